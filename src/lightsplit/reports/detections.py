"""How the detectors of a run scored its malicious clients."""

import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lightsplit.reports.groups import Group, Spread, spread
from lightsplit.reports.runs import Run


class Sight(NamedTuple):
    """One detector's last verdict in one run.

    Attributes:
        detector: its name.
        threshold: scores above it are flagged.
        false_alarm_rate: the bootstrapped rate; None if the detector states none.
        malicious_scores: the scores of the malicious clients that it has seen.
        rank: how many clients are at least as suspicious as the least suspicious
            malicious client, itself included; None if none was seen.
        f1: F1 of its flags; None if nobody is malicious and nobody is flagged.
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
        """The score of the least noticed malicious client."""
        return min(self.malicious_scores, default=None)

    @property
    def mean(self) -> float | None:
        """The mean score of the malicious clients."""
        scores = self.malicious_scores
        return statistics.fmean(scores) if scores else None


def sights(run: Run) -> list[Sight]:
    """Return the last verdict of each detector of a run, the acting one first."""
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
    """Return the malicious clients that the record names."""
    return list((run.record.get("backdoor") or {}).get("malicious_clients", []))


def detectors(groups: Sequence[Group]) -> list[str]:
    """Return the names of all detectors that judged, in order of appearance."""
    found = {s.detector: None for g in groups for run in g.runs for s in sights(run)}
    return list(found)


def over_seeds(
    group: Group, detector: str, figure: Callable[[Sight], float | None]
) -> Spread | None:
    """Return the spread of one detector's figure over the seeds of a group."""
    return spread(
        figure(sight)
        for run in group.runs
        for sight in sights(run)
        if sight.detector == detector
    )


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
