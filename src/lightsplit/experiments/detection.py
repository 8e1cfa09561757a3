"""The verdicts of a run's detectors, and how often they were right."""

import math
from collections.abc import Sequence
from typing import Any

from lightsplit.backdoors import score_detection
from lightsplit.experiments.config import Experiment
from lightsplit.runs import Progress

Verdicts = Sequence[dict[str, Any]]


def detection_record(
    experiment: Experiment, progress: Progress, *, knows_truth: bool = True
) -> dict[str, Any] | None:
    """Return the last verdicts and their quality, as record.json has them.

    A server that does not know the malicious clients cannot judge the quality.
    """
    verdicts = progress.verdicts
    if not experiment.detector or not verdicts:
        return None
    malicious = experiment.malicious_indices() if knows_truth else None
    seen = [
        {"detector": name, **_seen(judged, experiment.owners.clients, malicious)}
        for name, judged in zip(
            experiment.detector, _by_detector(verdicts), strict=True
        )
    ]
    return {
        **seen[0],
        "on_flag": experiment.guard.on_flag,
        "verdicts": len(verdicts),
        "undone_turns": progress.undone_turns or [0] * experiment.owners.clients,
        "others": seen[1:],
    }


def _by_detector(verdicts: Verdicts) -> list[Verdicts]:
    """Return the verdicts of the acting detector first, then those of the others."""
    others = zip(*(verdict.get("others", []) for verdict in verdicts), strict=True)
    return [verdicts, *others]


def _seen(
    verdicts: Verdicts, clients: int, malicious: Sequence[int] | None
) -> dict[str, Any]:
    """Return one detector's verdicts, with their quality if ``malicious`` is known."""
    last = verdicts[-1]
    scores: list[float | None] = [None] * clients
    for client, score in zip(last["clients"], last["scores"], strict=True):
        scores[client] = score
    quality = score_detection(last["flagged"], malicious or ())._asdict()
    return {
        "threshold": last["threshold"],
        "false_alarm_rate": last["false_alarm_rate"],
        "scores": scores,
        "flagged": last["flagged"],
        "most_suspicious": _highest(scores),
        "times_flagged": [
            sum(client in verdict["flagged"] for verdict in verdicts)
            for client in range(clients)
        ],
        **(dict.fromkeys(quality) if malicious is None else quality),
    }


def _highest(scores: list[float | None]) -> int | None:
    """Return the client with the highest score; None if no client stands out."""
    known = [-math.inf if score is None else score for score in scores]
    return known.index(max(known)) if len(set(known)) > 1 else None
