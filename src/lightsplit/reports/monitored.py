"""The figure that a task is judged by: an accuracy in percent, anything else as it is.

record["monitor"] = {"name": "r2", "is_higher_better": true, "last": …, "best": …}
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

ACCURACY = "accuracy"
ANY = "test figure"  # where tasks are judged by different ones


class Monitored(NamedTuple):
    """The name of a test figure, and how to read and write it.

    Attributes:
        name: of the metric, or "loss".
        is_higher_better: whether a higher value is a better model.
    """

    name: str = ACCURACY
    is_higher_better: bool = True

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Monitored":
        """Return the figure that a run was judged by."""
        monitor = record.get("monitor")
        if not monitor:
            return cls()
        return cls(monitor["name"], monitor["is_higher_better"])

    @property
    def is_accuracy(self) -> bool:
        """Say whether it is an accuracy, which is written in percent."""
        return self.name == ACCURACY

    @property
    def key(self) -> str:
        """Its name in records and in lines of metrics."""
        return f"test_{self.name}"

    @property
    def heading(self) -> str:
        """Its name above a column."""
        return f"{self.name} %" if self.is_accuracy else self.name

    @property
    def axis(self) -> str:
        """Its name beside an axis, with the direction where it may surprise."""
        if self.is_accuracy:
            return "test accuracy, %"
        return f"test {self.name}" + (
            "" if self.is_higher_better else ", less is better"
        )

    def shown(self, value: float) -> float:
        """Return a value as it is shown and drawn.

        Example:
            >>> Monitored().shown(0.5), Monitored("r2").shown(0.5)
            (50.0, 0.5)
        """
        return 100 * value if self.is_accuracy else value

    def text(self, value: float) -> str:
        """Return a value for people.

        Example:
            >>> Monitored().text(0.5), Monitored("r2").text(0.123456)
            ('50.00', '0.1235')
        """
        return f"{self.shown(value):.2f}" if self.is_accuracy else f"{value:.4g}"


def common_heading(figures: Sequence[Monitored]) -> str:
    """Return one heading for a column with the figures of several tasks."""
    headings = {figure.heading for figure in figures}
    return headings.pop() if len(headings) == 1 else ANY
