"""A turn: consecutive steps of one client."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class BatchSource(Protocol):
    """Batches by step number, so that a resumed run sees the same ones."""

    def batch(self, step: int) -> tuple[Any, Any]:
        """Return inputs and labels of ``step``."""
        ...


class TurnReport(NamedTuple):
    """The figures of a turn.

    Attributes:
        steps: that were taken.
        samples: in those steps.
        loss_sum: over samples.
        objective_sums: over samples, by name.
        objective_samples: those on which objectives were computed; probes have none.
    """

    steps: int = 0
    samples: int = 0
    loss_sum: float = 0.0
    objective_sums: Mapping[str, float] = {}
    objective_samples: int = 0

    @property
    def objective_means(self) -> dict[str, float]:
        """The mean of each objective over samples."""
        samples = self.objective_samples
        return {name: total / samples for name, total in self.objective_sums.items()}

    def after(
        self, samples: int, loss: float, objectives: Mapping[str, float]
    ) -> "TurnReport":
        """Return the report after one more step on ``samples``."""
        sums = {
            name: self.objective_sums.get(name, 0.0) + value * samples
            for name, value in objectives.items()
        }
        return TurnReport(
            self.steps + 1,
            self.samples + samples,
            self.loss_sum + loss * samples,
            sums or self.objective_sums,
            self.objective_samples + (samples if objectives else 0),
        )

    def plus(self, other: "TurnReport") -> "TurnReport":
        """Return both reports together."""
        names = {**self.objective_sums, **other.objective_sums}
        sums = {
            name: self.objective_sums.get(name, 0.0)
            + other.objective_sums.get(name, 0.0)
            for name in names
        }
        return TurnReport(
            self.steps + other.steps,
            self.samples + other.samples,
            self.loss_sum + other.loss_sum,
            sums,
            self.objective_samples + other.objective_samples,
        )
