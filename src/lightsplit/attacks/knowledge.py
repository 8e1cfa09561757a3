"""The knowledge that an attacker may have besides the server's view.

An attack names in ``needs`` the fields that its constructor takes. It is given those
and no others: they are its threat model in code. A field that a run cannot offer is
None, and an attack that needs it does not run.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from lightsplit.attacks.crowd import Crowd
from lightsplit.attacks.head_steps import HeadSteps
from lightsplit.codecs import Codec
from lightsplit.formats import WireFormats
from lightsplit.protocol import Contract


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Samples and their labels (M,).

    Attributes:
        images: (M, C, H, W), float in [0, 1]; rows of a table are (M, F), tokens
            (M, T).
        labels: of the samples.
    """

    images: Tensor
    labels: Tensor


@dataclass(frozen=True, eq=False)
class Pairs:
    """True codes of known images, as a colluding client could hand them over.

    Attributes:
        codes: as the server reads them (M, …).
        activations: the activations that the codes were made of (M, …).
        images: (M, C, H, W), float in [0, 1]; rows (M, F) or tokens (M, T).
        kind: of truth that the images are: ``image``, ``table`` or ``text``.
    """

    codes: Tensor
    activations: Tensor
    images: Tensor
    kind: str = "image"

    def part(self, rows: Tensor | slice) -> "Pairs":
        """Return some of the pairs."""
        return replace(
            self,
            codes=self.codes[rows],
            activations=self.activations[rows],
            images=self.images[rows],
        )


class ClientCopy(nn.Module, ABC):
    """A client's head and encoder: samples to codes as the server reads them."""

    @abstractmethod
    def activations(self, samples: Tensor) -> Tensor:
        """Return the head's output for samples, before the encoder."""

    @abstractmethod
    def forward(self, samples: Tensor) -> Tensor:
        """Return one readable code per sample."""


@dataclass(frozen=True, eq=False)
class Hints:
    """Samples among the recorded ones whose labels are known."""

    rows: Tensor
    labels: Tensor


@dataclass(frozen=True, eq=False)
class Linked:
    """What links the victim's codes over epochs, and the client that makes them.

    Attributes:
        steps_per_pass: steps in which the victim sends each of its samples once.
        passes: whole passes that the victim makes in the run.
        images: how many images there are to reconstruct.
        targets_of: the images to reconstruct among the rows of a step's code: for each
            row the number of the image, or -1.
        client_now: makes a copy of head and encoder as they are at this moment, in
            training mode: images to codes as the server reads them.
    """

    steps_per_pass: int
    passes: int
    images: int
    targets_of: Callable[[int], Tensor]
    client_now: Callable[[], nn.Module]


@dataclass(frozen=True, eq=False)
class Setup:
    """Everything a server has before the first message: all but the client's weights.

    Attributes:
        contract: of the run.
        formats: how the numbers of each message are written.
        codec: makes the codec as the server knows it.
        server: makes a network like the server's, codes to outputs. It takes the
            server's weights as its state, and its ``decoder`` lifts codes.
        tail: makes a network like the client's from outputs to logits, with fresh
            weights.
        device: of the tensors in messages.
    """

    contract: Contract
    formats: WireFormats
    codec: Callable[[], Codec]
    server: Callable[[], nn.Module]
    tail: Callable[[], nn.Module]
    device: torch.device


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Everything that any attacker may know; each attack is given its own part.

    Attributes:
        image_shape: shape of a sample: channels, height and width of an image.
        classes: how many labels there are; None if labels are not classes.
        auxiliary: images of the same kind as the victim's, none of them the victim's.
        pairs: auxiliary images with their true codes.
        architecture: makes a head like the victim's, with fresh weights.
        client: the victim's true head and encoder, images to codes, differentiable.
        labels: of the images to reconstruct; only the class mean uses them.
        hints: one sample of each class with its label.
        known_rows: half of the recorded samples with their labels.
        sent_labels: of the images to reconstruct, as the client sends them in training;
            empty if labels stay with the client.
        setup: everything that the server has before the first message.
        linked: links the codes that the victim sends in training with its images; only
            an attack that observes gets it.
        first_client: makes head and encoder, images to codes, with the weights that the
            run's seed gives; with True, those of a client that draws from a secret, so
            from no seed that the server knows.
        head_steps: computes the gradients of the head's weights for steps of one target
            each, as the next holder of a shared head can.
        crowd: samples, some of which were trained on, as they pass the server again.
        reasons: why a field is None, by the field's name.
    """

    image_shape: tuple[int, ...]
    classes: int | None
    auxiliary: LabelledImages | None = None
    pairs: Pairs | None = None
    architecture: Callable[[], nn.Module] | None = None
    client: ClientCopy | None = None
    labels: Tensor | None = None
    hints: Hints | None = None
    known_rows: Hints | None = None
    sent_labels: Tensor = field(default_factory=lambda: torch.empty(0).long())
    setup: Setup | None = None
    first_client: Callable[[bool], nn.Module] | None = None
    linked: Linked | None = None
    head_steps: Callable[[], HeadSteps] | None = None
    crowd: Crowd | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
