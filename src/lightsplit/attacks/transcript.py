"""A decoder that reads all codes of an image over all epochs.

    epoch 1: head₁(x) ─► code ┐
    epoch 2: head₂(x) ─► code ├─ joined ─► decoder (decoder.py) ─► image
    epoch 3: head₃(x) ─► code ┘

A head that is trained moves, so each epoch sends another code of the same image. The
bits of one code bound what a server learns from one code, not from all of them: this
attack measures what the codes of a whole run give away.

The server must know which codes belong to one image. It can if batches come in a fixed
order, if a client numbers its samples, or if codes are so fine that they can be matched
across epochs; here it is simply told. The pairs are those of an accomplice with the
same head: auxiliary images, coded at the victim's steps, each once in every pass, with
batch statistics and noise as in training. What is joined was sent in training; the
codes of a prediction are left alone.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from lightsplit import seeding
from lightsplit.attacks.base import ATTACKS, Kind, Progress, at_least, silent
from lightsplit.attacks.capabilities import Guess, Observes
from lightsplit.attacks.decoder import TrainsDecoder
from lightsplit.attacks.decoder_training import decode
from lightsplit.attacks.knowledge import LabelledImages, Linked, Pairs, Setup
from lightsplit.attacks.releases import Releases
from lightsplit.attacks.view import Exchange, ServerView, read_code, readable
from lightsplit.errors import AuditError
from lightsplit.part_facts import PartFacts
from lightsplit.protocol import CodeMessage, Wire

MOST_VALUES = 2**27  # kept of the auxiliary images' codes, half a gigabyte


@ATTACKS.register("transcript-decoder")
class TranscriptDecoder(TrainsDecoder, Observes):
    """The decoder on all codes of an image.

    Its options are those of ``decoder``, and:

    Attributes:
        releases: how many of the last passes over the data it joins; by default all.
    """

    name = "transcript-decoder"
    kind: ClassVar[Kind] = "oracle"
    needs: ClassVar[tuple[str, ...]] = ("linked", "auxiliary", "setup")
    threat_model = (
        "a server that links the codes of a sample over epochs, and has an accomplice "
        "with the same head"
    )
    cost = "that of decoder, and a pass of the auxiliary images in every epoch"
    facts = PartFacts(
        source="LightSplit",
        assumes="which codes are of one sample, and images of the same kind",
        status="ours",
    )

    def __init__(
        self,
        *,
        linked: Linked,
        auxiliary: LabelledImages,
        setup: Setup,
        releases: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 1, releases=releases)
        self.releases = releases
        self._linked = linked
        self._device = setup.device
        self._codec = setup.codec()
        self._wire = Wire(self._codec, formats=setup.formats)
        self._images = auxiliary.images[: self._most_images(len(auxiliary.images))]
        self._sent = Releases(linked.images, linked.passes)
        self._known = Releases(len(self._images), linked.passes)

    def observe(self, exchange: Exchange, weights: Mapping[str, Tensor]) -> None:
        """Keep the targets' codes, and encode some of the attacker's own images."""
        del weights
        message = exchange.request
        if not isinstance(message, CodeMessage) or not message.is_training:
            return
        number, position = divmod(message.step, self._linked.steps_per_pass)
        if number >= self._linked.passes:
            return  # training ends within this pass
        codes = readable(self._codec, read_code(message, self._wire)).cpu()
        targets = self._linked.targets_of(message.step)
        is_target = targets >= 0
        self._sent.add(number, targets[is_target], codes[is_target])
        with seeding.scope(self.seed, self.name, message.step):
            self._code_own(number, position, len(codes))

    def guess(self) -> Guess:
        """Return nothing: the decoder is trained when training is over."""
        return Guess()

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the decoder's image for the joined codes of every target."""
        del view  # its codes were sent outside training
        passes = self._whole_passes()
        is_one = len(passes) == 1
        number = "1 code" if is_one else f"{len(passes)} codes"
        self.notes.append(f"{number} of each image{'' if is_one else ', joined'}")
        known = self._known.joined(passes)
        network = self.train_on(Pairs(known, known, self._images), progress).network
        return decode(network, self._sent.joined(passes))

    def state(self) -> dict[str, Tensor]:
        """Return all codes that were kept."""
        return {**self._sent.state("sent"), **self._known.state("known")}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load the codes that ``state()`` of an equal attack returned."""
        self._sent.load("sent", state)
        self._known.load("known", state)

    def _most_images(self, available: int) -> int:
        """Return how many auxiliary images fit into memory with all their codes."""
        code = self._codec.layout(1)
        size = self._codec.activation_size if code.side else self._codec.code_size
        return min(available, MOST_VALUES // (size * max(1, self._linked.passes)))

    def _code_own(self, number: int, position: int, batch: int) -> None:
        """Code this step's share of the own images, in batches like the victim's."""
        shares = torch.arange(len(self._images)).tensor_split(
            self._linked.steps_per_pass
        )
        client = self._linked.client_now()
        for rows in torch.split(shares[position], batch):
            if not len(rows):
                continue
            filled = (rows[0] + torch.arange(batch)) % len(self._images)
            with torch.no_grad():
                codes = client(self._images[filled].to(self._device))[: len(rows)]
            self._known.add(number, rows, codes.cpu())

    def _whole_passes(self) -> Tensor:
        passes = self._sent.whole()
        if not len(passes):
            raise AuditError(
                "transcript-decoder needs the codes of at least one whole pass over "
                "the victim's data, and this run has none: train longer"
            )
        return passes[-(self.releases or len(passes)) :]
