"""A decoder trained on true pairs: the best a server can do with a colluding client.

This is the black-box inversion of He, Zhang and Lee (ACSAC 2019) with the best possible
data: true codes, of images that are not the victim's. Published attacks have to guess
the head first, so in practice this is their ceiling; it does not prove one.

What may surprise: nobody tells the decoder R for a projected code. It learns R from the
pairs. ``decoder_training.py`` says how long it trains.
"""

from typing import Any, ClassVar

from torch import Tensor

from lightsplit.attacks.base import ATTACKS, Budget, Kind, Progress, at_least, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.decoder_training import (
    LEARNING_RATE,
    Effort,
    TrainedDecoder,
    decode,
    train_decoder,
)
from lightsplit.attacks.knowledge import Pairs
from lightsplit.attacks.view import ServerView
from lightsplit.part_facts import PartFacts
from lightsplit.truths import KINDS

MAY_GAIN = 0.01  # of the score by doubling width and steps

EFFORTS: dict[Budget, Effort] = {
    "quick": Effort(
        most_pairs=5_000, steps=1_000, most_steps=4_000, width=32, blocks=1
    ),
    "short": Effort(
        most_pairs=10_000, steps=2_000, most_steps=16_000, width=48, blocks=1
    ),
    "full": Effort(
        most_pairs=30_000, steps=4_000, most_steps=64_000, width=48, blocks=2
    ),
}


class TrainsDecoder(Reconstructs):
    """An attack that trains a network from codes to samples, on pairs that it has.

    Images are scored by SSIM, rows of a table by R², texts by the accuracy of tokens.

    Its options, by default those of the budget: ``most_pairs`` to learn from, ``steps``
    of the first round, ``most_steps`` of all rounds, ``width`` and ``blocks`` of the
    network, and ``lr``, the highest rate of a round.

    Attributes:
        effort: what all these options come to.
        is_thorough: whether a second decoder with twice the width and twice the steps
            is trained. If its score on held-out pairs is higher by more than 0.01, the
            first had not converged. The better one attacks. By default only the budget
            ``full`` does this.
        parameters: trained weights of the network that attacks.
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        most_pairs: int | None = None,
        steps: int | None = None,
        most_steps: int | None = None,
        width: int | None = None,
        blocks: int | None = None,
        lr: float = LEARNING_RATE,
        thorough: bool | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        counts = {"steps": steps, "most_steps": most_steps, "width": width}
        given = {"most_pairs": most_pairs, **counts}
        at_least(self.name, 1, **given)
        at_least(self.name, 0, blocks=blocks, lr=lr)
        chosen = {k: v for k, v in {**given, "blocks": blocks}.items() if v is not None}
        self.effort = EFFORTS[self.budget]._replace(lr=lr, **chosen)
        self.is_thorough = self.budget == "full" if thorough is None else thorough
        self.parameters = 0

    def train_on(self, pairs: Pairs, progress: Progress = silent) -> TrainedDecoder:
        """Return the decoder that attacks, and note whether it has converged."""
        trained = self._trained(pairs, self.effort, progress)
        self.converged = trained.is_converged
        self._describe(trained, min(len(pairs.codes), self.effort.most_pairs))
        if self.is_thorough:
            doubled = self._trained(pairs, self.effort.doubled(), progress)
            trained = self._better(trained, doubled)
        self.parameters = trained.parameters
        return trained

    def _trained(
        self, pairs: Pairs, effort: Effort, progress: Progress
    ) -> TrainedDecoder:
        return train_decoder(pairs, effort, seed=self.seed, progress=progress)

    def _better(self, first: TrainedDecoder, doubled: TrainedDecoder) -> TrainedDecoder:
        """Return the better one; a second that is much better shows no convergence."""
        gain = doubled.similarity - first.similarity
        self.converged = gain <= MAY_GAIN
        found = "converged" if self.converged else "not converged"
        self.notes.append(
            f"{found}: twice the width and steps ({doubled.parameters:,} weights, "
            f"{doubled.steps:,} steps) change {first.network.score_name} on held-out "
            f"pairs by {gain:+.4f}"
        )
        return doubled if gain > 0 else first

    def _describe(self, trained: TrainedDecoder, pairs: int) -> None:
        found = "converged" if trained.is_converged else "not converged"
        gain = "" if trained.gain is None else f", the second half {trained.gain:+.4f}"
        self.notes.append(
            f"{found} after {trained.steps:,} steps: {trained.network.score_name} on "
            f"held-out pairs {trained.similarity:.4f}{gain}; {trained.parameters:,} "
            f"weights, {pairs:,} pairs"
        )
        self.notes += trained.network.notes


@ATTACKS.register("decoder")
class DecoderAttack(TrainsDecoder):
    """A network from codes to samples, trained until more steps do not help."""

    name = "decoder"
    kind: ClassVar[Kind] = "oracle"
    runs_by_default = True
    truths: ClassVar[tuple[str, ...]] = KINDS
    needs: ClassVar[tuple[str, ...]] = ("pairs",)
    threat_model = "a server that was given codes with their samples by a client"
    cost = (
        "1,000 to 4,000 steps (quick) or 4,000 to 64,000 (full); thorough, as full is "
        "by default: nine times as much"
    )
    facts = PartFacts(
        source="after He, Zhang, Lee, ACSAC 2019",
        assumes="true codes of samples of the same kind",
        status="adapted",
    )

    def __init__(self, *, pairs: Pairs, **options: Any) -> None:
        super().__init__(**options)
        self.pairs = pairs

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the decoder's sample for every code."""
        return decode(self.train(progress).network, view.codes)

    def train(self, progress: Progress = silent) -> TrainedDecoder:
        """Return the decoder that attacks, trained on the pairs that were given."""
        return self.train_on(self.pairs, progress)
