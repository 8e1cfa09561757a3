"""Which owners made a round begin again, so that none of them does it for ever.

A message that cannot be computed puts its owner out of the round. If too few are left,
the round is undone and begins again: without that owner if the others are enough, with
it if the round needs it. The time of the round goes on, whatever happens.
"""

from collections import Counter
from collections.abc import Iterable


class RoundRestarts:
    """Counts, for one round of the schedule, how often each owner made it fail."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    @property
    def owners(self) -> set[int]:
        """The owners that made the round fail."""
        return set(self._counts)

    @property
    def count(self) -> int:
        """How often an owner made the round fail."""
        return self._counts.total()

    def note(self, refused: Iterable[int]) -> None:
        """Note that the round was undone because these owners were refused."""
        self._counts.update(refused)

    def fit(self, able: set[int], least: int) -> set[int]:
        """Return who takes part: owners that never failed, if they are enough."""
        others = able - self.owners
        return others if len(others) >= least else able

    def clear(self) -> None:
        """Begin with another round."""
        self._counts.clear()
