"""False alarms in a report: honest runs, and how often a detector flagged somebody."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lightsplit.reports.detections import Sight, malicious_clients, sights
from lightsplit.reports.groups import Group
from lightsplit.reports.tables import Table, Value, shown_settings

_NOTE = (
    "Runs without a malicious client, one verdict each, the last: verdicts of one run "
    "are not independent. Stated: the mean of the rates that the detector gave. "
    "Measured: the share of runs in which it flagged anybody, with its 95 % interval."
)
_NORMAL = 1.96


@dataclass(frozen=True)
class Alarms:
    """One detector's false alarms in the honest runs of a group."""

    detector: str
    sights: list[Sight]

    @property
    def count(self) -> int:
        """The number of runs in which somebody was flagged."""
        return sum(sight.honest_flagged > 0 for sight in self.sights)

    @property
    def rate(self) -> float:
        """The measured rate."""
        return self.count / len(self.sights)

    @property
    def stated(self) -> float | None:
        """The mean of the rates that the detector stated; None if it stated none."""
        known = [s.false_alarm_rate for s in self.sights if s.false_alarm_rate]
        return sum(known) / len(known) if known else None

    @property
    def threshold(self) -> float:
        """The mean threshold."""
        return sum(sight.threshold for sight in self.sights) / len(self.sights)

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the rate."""
        return wilson_interval(self.count, len(self.sights))

    @property
    def is_within(self) -> bool | None:
        """Whether the stated rate lies in the interval; None if none was stated."""
        low, high = self.interval
        return None if self.stated is None else low <= self.stated <= high


def false_alarm_table(groups: Sequence[Group]) -> Table | None:
    """Return measured against stated rates; None without an honest, judged run."""
    found = [(group, alarms) for group in groups for alarms in _of(group)]
    if not found:
        return None
    columns = ("setting", "method", "detector", "runs", "threshold", "stated %")
    rows = [_row(group, alarms) for group, alarms in found]
    names = shown_settings(groups)
    lines = [_line(group, alarms, names) for group, alarms in found]
    title = "False alarms: honest clients that were flagged"
    return Table("false-alarms", title, _NOTE, (*columns, "measured %"), rows, lines)


def wilson_interval(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, after Wilson.

    Example:
        >>> tuple(round(end, 3) for end in wilson_interval(2, 40))
        (0.014, 0.165)
    """
    share, weight = count / total, _NORMAL**2 / total
    middle = (share + weight / 2) / (1 + weight)
    variance = share * (1 - share) / total + weight / (4 * total)
    half = _NORMAL * math.sqrt(variance) / (1 + weight)
    return middle - half, middle + half


def _of(group: Group) -> Iterator[Alarms]:
    seen: dict[str, list[Sight]] = {}
    for run in group.runs:
        if not malicious_clients(run):
            for sight in sights(run):
                seen.setdefault(sight.detector, []).append(sight)
    for detector, found in seen.items():
        yield Alarms(detector, found)


def _row(group: Group, alarms: Alarms) -> tuple[Value, ...]:
    runs, own = len(alarms.sights), group.labels
    low, high = alarms.interval
    stated = alarms.stated
    tone = {True: "good", False: "bad", None: ""}[alarms.is_within]
    return (
        Value(own["task"], below=f"{own['setting']}, {own['schedule']}"),
        Value(group.method),
        Value(alarms.detector),
        Value(str(runs), runs),
        Value(f"{alarms.threshold:.2f}", alarms.threshold),
        Value("–", -1.0) if stated is None else Value(f"{100 * stated:.1f}", stated),
        Value(
            f"{100 * alarms.rate:.1f}",
            alarms.rate,
            below=f"{100 * low:.1f} to {100 * high:.1f}",
            tone=tone,
        ),
    )


def _line(group: Group, alarms: Alarms, names: Sequence[str]) -> dict[str, Any]:
    low, high = alarms.interval
    return {
        "method": group.method,
        **{name: group.settings.get(name, "") for name in names},
        "detector": alarms.detector,
        "runs": len(alarms.sights),
        "threshold": alarms.threshold,
        "stated": alarms.stated,
        "alarms": alarms.count,
        "measured": alarms.rate,
        "low": low,
        "high": high,
    }
