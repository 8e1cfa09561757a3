"""How much the steps of one client differ: the noise in its mean vector.

    step means x₁, x₂, … of a client ──► differences (xₜ₊₁ − xₜ) / √2 ──► sketch

A difference of two steps of the same client has no part of that client's own mean, so
neither skewed labels nor poison shift it, and the slow drift of a head in training
nearly cancels. The sketch S has a fixed number of rows, each the sum of all differences
times normal random numbers. Its rows are therefore draws from a normal distribution
with the covariance of the differences, whatever their number: a bootstrap with normal
multipliers, kept up to date step by step.
"""

import math

import torch
from torch import Tensor

from lightsplit.seeding import numpy_generator

ROWS = 128
_PREFIX = "noise."


class Noise:
    """The noise of one kind of vector, pooled over clients.

    Attributes:
        sketch: (ROWS, values); rows with the covariance of one step, times ``count``.
        count: how many differences it holds.
        steps: of each client.
    """

    def __init__(self, sketch: Tensor, count: int, steps: dict[int, int]) -> None:
        self.sketch = sketch
        self.count = count
        self.steps = steps

    @property
    def of_one_step(self) -> Tensor:
        """Rows with the covariance of the mean vector of one step (ROWS, values)."""
        return self.sketch / math.sqrt(self.count)


class StepNoise:
    """Adds up the noise of every kind until it is cleared."""

    def __init__(self) -> None:
        self._known: dict[str, Tensor] = {}

    def add(self, kind: str, client: int, mean: Tensor) -> None:
        """Add the mean vector of a step of ``client``."""
        known, last, steps = self._known, f"{kind}.{client}", f"{kind}.{client}.steps"
        done = int(known.get(steps, torch.tensor(0)))
        if last in known:
            difference = (mean - known[last]) / math.sqrt(2)
            drawn = numpy_generator(0, "noise", kind, client, done).standard_normal(
                ROWS
            )
            added = torch.outer(torch.from_numpy(drawn), difference)
            known[kind] = known[kind] + added if kind in known else added
        known[last] = mean
        known[steps] = torch.tensor(done + 1)

    def of(self, kind: str) -> Noise | None:
        """Return the noise of a kind; None before any client has had two steps."""
        if kind not in self._known:
            return None
        ending = ".steps"
        steps = {
            int(key.split(".")[1]): int(count)
            for key, count in self._known.items()
            if key.startswith(f"{kind}.") and key.endswith(ending)
        }
        return Noise(self._known[kind], sum(steps.values()) - len(steps), steps)

    def clear(self) -> None:
        """Forget everything."""
        self._known = {}

    def state(self) -> dict[str, Tensor]:
        """Return the sums, for a checkpoint."""
        return {_PREFIX + key: tensor for key, tensor in self._known.items()}

    def load(self, state: dict[str, Tensor]) -> None:
        """Continue from the sums among the tensors of a checkpoint."""
        self._known = {
            key.removeprefix(_PREFIX): tensor
            for key, tensor in state.items()
            if key.startswith(_PREFIX)
        }
