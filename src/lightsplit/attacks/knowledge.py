"""What an attacker may know besides the server's view.

An attack names in ``needs`` which of these it takes; it is given those and no others,
by its constructor, and they are its threat model in code. Everything is optional: what
a run cannot offer is None, and an attack that needs it is not run.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from lightsplit.codecs import Codec
from lightsplit.formats import WireFormats
from lightsplit.protocol import Contract


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images (M, C, H, W), float in [0, 1], and their labels (M,)."""

    images: Tensor
    labels: Tensor


@dataclass(frozen=True, eq=False)
class Pairs:
    """True codes of known images: what a colluding client could hand over.

    Attributes:
        codes: as the server reads them (M, …).
        activations: what the codes were made of (M, …).
        images: (M, C, H, W), float in [0, 1].
    """

    codes: Tensor
    activations: Tensor
    images: Tensor


@dataclass(frozen=True, eq=False)
class Hints:
    """Samples among the recorded ones whose labels are known, one per class."""

    rows: Tensor
    labels: Tensor


@dataclass(frozen=True, eq=False)
class Setup:
    """What a server has before the first message: all but the client's weights.

    Attributes:
        contract: of the run.
        formats: how the numbers of each message are written.
        codec: makes the codec as the server knows it.
        server: makes a network like the server's, codes to outputs. It takes the
            server's weights as its state, and its ``decoder`` lifts codes.
        tail: makes a network like the client's from outputs to logits, with fresh
            weights.
        device: where the tensors of messages are.
    """

    contract: Contract
    formats: WireFormats
    codec: Callable[[], Codec]
    server: Callable[[], nn.Module]
    tail: Callable[[], nn.Module]
    device: torch.device


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Everything that some attacker may know; each attack gets its own part of it.

    Attributes:
        image_shape: channels, height and width of an image.
        classes: how many labels there are.
        auxiliary: images of the same kind as the victim's, none of them the victim's.
        pairs: auxiliary images with their true codes.
        architecture: makes a head like the victim's, with fresh weights.
        client: the victim's true head and encoder, images to codes, differentiable.
        labels: of the images to reconstruct; only the class mean uses them.
        hints: one sample of each class with its label.
        sent_labels: of the images to reconstruct, as the client sends them in training;
            none where labels stay with the client.
        setup: what the server has before the first message.
    """

    image_shape: tuple[int, int, int]
    classes: int
    auxiliary: LabelledImages | None = None
    pairs: Pairs | None = None
    architecture: Callable[[], nn.Module] | None = None
    client: nn.Module | None = None
    labels: Tensor | None = None
    hints: Hints | None = None
    sent_labels: Tensor = field(default_factory=lambda: torch.empty(0).long())
    setup: Setup | None = None
