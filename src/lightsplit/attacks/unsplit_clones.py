"""The attacker's copies of the victims' heads, one for every image to be found.

    images (P, C, H, W) ──P heads──► activations (P, …) ──┬─codec 1─► (N₁, …)
                                                          └─codec 2─► (N₂, …) …

A clone starts from weights of its own, drawn from its victim's seed and its number
among that victim's images: other clones in the stack change nothing. A codec that is
drawn from the contract is the victim's own; learned encoders are cloned too.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from lightsplit import seeding
from lightsplit.attacks.unsplit_layers import stack
from lightsplit.attacks.view import readable
from lightsplit.codecs import Codec

Architecture = Callable[[], nn.Module]


@dataclass(frozen=True, eq=False)
class Observed:
    """The rows that a server has of one victim, one for every image.

    Attributes:
        rows: codes or activations (N, …); a clone's output is fitted to each.
        codec: encodes a clone's output before it is compared; None leaves it as it is.
        seed: of the clones' first weights.
    """

    rows: Tensor
    codec: Codec | None = None
    seed: int = 0


class Clones(nn.Module):
    """The stacked heads and encoders of all victims."""

    def __init__(
        self, observed: Sequence[Observed], architecture: Architecture
    ) -> None:
        super().__init__()
        self.counts = [len(victim.rows) for victim in observed]
        self.head = stack(
            [
                _fresh(architecture, victim.seed, "clone", row)
                for victim in observed
                for row in range(len(victim.rows))
            ]
        )
        self.codecs = [_cloned(victim) for victim in observed]
        self.encoders = nn.ModuleList(
            codec.encoder for codec in self.codecs if codec is not None
        )
        self.to(observed[0].rows)

    def forward(self, images: Tensor) -> list[Tensor]:
        """Return the rows that each victim's server would have seen of ``images``."""
        activations = self.head(images).split(self.counts)
        return [
            rows if codec is None else readable(codec, codec.encoder(rows))
            for rows, codec in zip(activations, self.codecs, strict=True)
        ]


def _fresh(architecture: Architecture, seed: int, *names: str | int) -> nn.Module:
    with seeding.scope(seed, "unsplit", *names):
        return architecture()


def _cloned(victim: Observed) -> Codec | None:
    """Return the codec, with an encoder for each row if encoders learn."""
    codec = victim.codec
    if codec is None or not any(True for _ in codec.encoder.parameters()):
        return codec
    mine = copy.copy(codec)
    encoders = [
        _redrawn(codec.encoder, victim.seed, n) for n in range(len(victim.rows))
    ]
    mine.encoder = stack(encoders)  # type: ignore[assignment]  # an Encoder's copy
    return mine


def _redrawn(encoder: nn.Module, seed: int, row: int) -> nn.Module:
    redrawn = copy.deepcopy(encoder)
    with seeding.scope(seed, "unsplit", "encoder", row):
        for module in redrawn.modules():
            reset = getattr(module, "reset_parameters", None)
            if reset is not None:
                reset()
    return redrawn
