"""What the detectors of a run saw, and how right they were."""

import math
from collections.abc import Sequence
from typing import Any

from lightsplit.backdoors import score_detection
from lightsplit.experiments.config import Experiment
from lightsplit.training import Progress

Verdicts = Sequence[dict[str, Any]]


def detection_record(
    experiment: Experiment, progress: Progress, *, knows_truth: bool = True
) -> dict[str, Any] | None:
    """Return the last verdicts and how good they were, in words of record.json.

    A server that is not told who is malicious cannot say how good they were.
    """
    verdicts = progress.verdicts
    if not experiment.detector or not verdicts:
        return None
    malicious = experiment.malicious_indices() if knows_truth else None
    seen = [
        {"detector": name, **_seen(judged, experiment.clients, malicious)}
        for name, judged in zip(
            experiment.detectors(), _by_detector(verdicts), strict=True
        )
    ]
    return {
        **seen[0],
        "on_flag": experiment.on_flag,
        "verdicts": len(verdicts),
        "undone_turns": progress.undone_turns or [0] * experiment.clients,
        "others": seen[1:],
    }


def _by_detector(verdicts: Verdicts) -> list[Verdicts]:
    """Return the verdicts of the detector that acts, then those of each other one."""
    others = zip(*(verdict.get("others", []) for verdict in verdicts), strict=True)
    return [verdicts, *others]


def _seen(
    verdicts: Verdicts, clients: int, malicious: Sequence[int] | None
) -> dict[str, Any]:
    """Return what one detector saw; without the malicious ones not how right it was."""
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
    """Return whose score is the highest; None where nobody stands out."""
    known = [-math.inf if score is None else score for score in scores]
    return known.index(max(known)) if len(set(known)) > 1 else None
