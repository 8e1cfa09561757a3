"""A decoder trained on true pairs: what a server can learn from a colluding client.

    pairs ─┬─ nine tenths ─► train a network from codes to images
           └─ one tenth ───► keep the weights that do best here

The black-box inversion of He, Zhang and Lee (ACSAC 2019) with the best data there could
be: true codes, of images that are none of the victim's. Published attacks have to guess
the head first, so this is the ceiling in practice for them; it is no proof of one.

What may surprise: for a projected code it is told nothing of R. The pairs tell it.
"""

import copy
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from lightsplit.attacks.base import (
    ATTACKS,
    Budget,
    Kind,
    Progress,
    Reconstruction,
    silent,
)
from lightsplit.attacks.decoder_loss import decoder_loss
from lightsplit.attacks.decoder_networks import build_decoder
from lightsplit.attacks.knowledge import Pairs
from lightsplit.attacks.linear import held_out_split
from lightsplit.attacks.view import ServerView
from lightsplit.seeding import scope

BATCH = 32
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-4
CHECKS = 20  # how often the held-out pairs are looked at
CHUNK = 512


class Effort(NamedTuple):
    """What a budget buys: pairs to learn from, steps of a batch, and capacity."""

    pairs: int
    steps: int
    width: int
    blocks: int


EFFORTS: dict[Budget, Effort] = {
    "quick": Effort(pairs=5_000, steps=1_500, width=32, blocks=1),
    "short": Effort(pairs=10_000, steps=4_000, width=48, blocks=1),
    "full": Effort(pairs=30_000, steps=8_000, width=48, blocks=2),
}


@ATTACKS.register("decoder")
class DecoderAttack(Reconstruction):
    """A network from codes to images, trained on pairs and stopped early.

    Attributes:
        effort: what it may use; by default what the budget buys.
        parameters: how many weights the network has, once it is built.
    """

    name = "decoder"
    kind: ClassVar[Kind] = "oracle"
    needs = ("pairs",)
    threat_model = "a server that was given codes with their images by a client"
    cost = "trains a network: a minute (quick) or ten (full) at 28x28"

    def __init__(
        self, *, pairs: Pairs, effort: Effort | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.pairs = pairs
        self.effort = effort or EFFORTS[self.budget]
        self.parameters = 0

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the decoder's image for every code."""
        with scope(self.seed, "decoder"):
            network = self._train(progress)
        return _decode(network, view.codes)

    def _train(self, progress: Progress) -> nn.Module:
        """Return the network with the weights that did best on the held-out pairs."""
        rows = slice(self.effort.pairs)
        count = len(self.pairs.codes[rows])
        fitting, held_out = held_out_split(count, seed=self.seed)
        seen, unseen = _part(self.pairs, fitting), _part(self.pairs, held_out)
        _, steps, width, blocks = self.effort
        network = build_decoder(seen, width=width, blocks=blocks, seed=self.seed)
        best, lowest, best_step = network, float("inf"), 0
        for step in _descend(network, seen, steps):
            progress(step, steps)
            if step % max(1, steps // CHECKS) and step != steps:
                continue
            error = float(decoder_loss(_decode(network, unseen.codes), unseen.images))
            if error < lowest:
                best, lowest, best_step = copy.deepcopy(network), error, step
        self._describe(best, count, best_step)
        return best

    def _describe(self, network: nn.Module, pairs: int, step: int) -> None:
        self.parameters = sum(weight.numel() for weight in network.parameters())
        self.notes.append(
            f"{self.parameters:,} parameters, trained on {pairs:,} pairs; best after "
            f"{step:,} of {self.effort.steps:,} steps of {BATCH}"
        )


def _descend(network: nn.Module, pairs: Pairs, steps: int) -> Iterator[int]:
    """Train on random batches; yield after each step how many were done."""
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=steps + 1, pct_start=0.2
    )
    for step in range(1, steps + 1):
        rows = torch.randint(len(pairs.codes), (BATCH,))
        network.train()
        loss = decoder_loss(network(pairs.codes[rows]), pairs.images[rows])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        yield step


def _decode(network: nn.Module, codes: Tensor) -> Tensor:
    network.eval()
    with torch.no_grad():
        return torch.cat([network(chunk) for chunk in torch.split(codes, CHUNK)])


def _part(pairs: Pairs, rows: Tensor) -> Pairs:
    return Pairs(pairs.codes[rows], pairs.activations[rows], pairs.images[rows])
