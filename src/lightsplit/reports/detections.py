"""What the detectors of a run saw, and runs that differ in one factor at a time.

    groups ──► families: all settings alike but codec and factors ──► base of each

The paper changes one of four factors at a time. A family's base has of each factor the
value that most of its groups have.
"""

import json
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lightsplit.reports.groups import Group, Spread, spread
from lightsplit.reports.runs import Run
from lightsplit.reports.tables import schedule_text

FACTORS = {
    "alpha": "α (Dirichlet)",
    "clients": "n (clients)",
    "malicious": "μ (malicious share)",
    "poison_ratio": "p (poison ratio)",
}
PAPER_BASE = {"alpha": 1e7, "clients": 10, "malicious": 0.1, "poison_ratio": 0.3}
_FREE = (
    *FACTORS,
    *("codec", "ratio", "projection", "scale", "hidden", "wcc"),
    *("detector", "seed", "device"),
)


class Sight(NamedTuple):
    """What one detector saw in one run at its last verdict.

    Attributes:
        detector: its name.
        threshold: scores above it are flagged.
        false_alarm_rate: as simulated; None where it was not.
        malicious_scores: of the malicious clients that it has seen.
        rank: how many clients are at least as suspicious as the least malicious one
            that was seen; 1 is the first. None where there is none.
        f1: of its flags; None where nobody is malicious and nobody flagged.
        honest_flagged: how many honest clients it flags.
        history: the smallest score of a malicious client, verdict by verdict.
    """

    detector: str
    threshold: float
    false_alarm_rate: float | None
    malicious_scores: list[float]
    rank: int | None
    f1: float | None
    honest_flagged: int
    history: list[float]

    @property
    def smallest(self) -> float | None:
        """The score of the malicious client that is noticed least."""
        return min(self.malicious_scores, default=None)

    @property
    def mean(self) -> float | None:
        """The mean score of the malicious clients."""
        scores = self.malicious_scores
        return statistics.fmean(scores) if scores else None


@dataclass(frozen=True)
class Family:
    """Groups that differ in codec and factors only."""

    groups: tuple[Group, ...]
    base: dict[str, float]

    @property
    def is_poisoned(self) -> bool:
        """Say whether anybody plants anything in its runs."""
        return bool(self.groups[0].settings.get("trigger"))

    @property
    def title(self) -> str:
        """Where and for how long its runs were trained."""
        own = self.groups[0].settings
        words = [own["cut"], own["heads"], own.get("trigger") or "nobody malicious"]
        return f"{own['dataset']}: {' · '.join(words)}, {schedule_text(own)}"

    def changed(self, group: Group) -> tuple[str, ...]:
        """Return the factors in which ``group`` differs from the base."""
        own = group.settings
        return tuple(name for name in FACTORS if own[name] != self.base[name])

    def along(self, factor: str) -> list[Group]:
        """Return the groups in which nothing but ``factor`` differs from the base."""
        return [group for group in self.groups if set(self.changed(group)) <= {factor}]


def sights(run: Run) -> list[Sight]:
    """Return what each detector of a run saw, the one that acted first."""
    detection = run.record.get("detection")
    if not detection:
        return []
    malicious = malicious_clients(run)
    seen = [detection, *detection.get("others", [])]
    return [
        _sight(entry, malicious, _history(run, place, malicious))
        for place, entry in enumerate(seen)
    ]


def malicious_clients(run: Run) -> list[int]:
    """Return who was malicious, as far as the record knows."""
    return list((run.record.get("backdoor") or {}).get("malicious_clients", []))


def detectors(groups: Sequence[Group]) -> list[str]:
    """Return every detector that judged, in order of appearance."""
    found = {s.detector: None for g in groups for run in g.runs for s in sights(run)}
    return list(found)


def over_seeds(
    group: Group, detector: str, figure: Callable[[Sight], float | None]
) -> Spread | None:
    """Return a figure of one detector's sight, over the seeds of a group."""
    return spread(
        figure(sight)
        for run in group.runs
        for sight in sights(run)
        if sight.detector == detector
    )


def families(groups: Sequence[Group]) -> list[Family]:
    """Return the groups with a trigger or a detector, by what they have in common."""
    found: dict[str, list[Group]] = {}
    for group in groups:
        own = group.settings
        if own.get("trigger") or own.get("detector"):
            key = {name: value for name, value in own.items() if name not in _FREE}
            found.setdefault(json.dumps(key, sort_keys=True), []).append(group)
    return [Family(tuple(members), _base(members)) for members in found.values()]


def factor_text(factor: str, value: float) -> str:
    """Return a factor's value for people."""
    return "IID" if factor == "alpha" and not value else f"{value:g}"


def factor_order(factor: str, value: float) -> float:
    """Return what a factor's values are sorted by: the most alike clients last."""
    return float("inf") if factor == "alpha" and not value else value


def _base(groups: Sequence[Group]) -> dict[str, float]:
    """Return the most frequent value of each factor; of several, the paper's."""
    base: dict[str, float] = {}
    for name, papers in PAPER_BASE.items():
        counts = Counter(group.settings[name] for group in groups)
        base[name] = max(counts, key=lambda v: (counts[v], v == papers))
    return base


def _sight(entry: dict[str, Any], malicious: list[int], history: list[float]) -> Sight:
    scores = entry["scores"]
    found = [scores[client] for client in malicious if scores[client] is not None]
    known = [score for score in scores if score is not None]
    return Sight(
        detector=entry["detector"],
        threshold=entry["threshold"],
        false_alarm_rate=entry["false_alarm_rate"],
        malicious_scores=found,
        rank=sum(score >= min(found) for score in known) if found else None,
        f1=entry["f1"],
        honest_flagged=len(set(entry["flagged"]) - set(malicious)),
        history=history,
    )


def _history(run: Run, place: int, malicious: list[int]) -> list[float]:
    history = []
    for line in run.verdicts:
        verdict = [line, *line.get("others", [])][place]
        scores = dict(zip(verdict["clients"], verdict["scores"], strict=True))
        found = [scores[client] for client in malicious if client in scores]
        history += [min(found)] if found else []
    return history
