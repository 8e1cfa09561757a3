"""The backdoor part of an experiment: who plants what, who watches, how it came out."""

import math
from collections.abc import Sequence
from typing import Any

from lightsplit.backdoors import (
    TRIGGERS,
    EvidenceCollector,
    MessageReading,
    PoisonedBatches,
    Trials,
    Trigger,
    check_collectable,
    make_detector,
    score_detection,
)
from lightsplit.experiments.config import FACTS, Experiment
from lightsplit.protocol import Contract
from lightsplit.runtime import Client, Server
from lightsplit.training import Guard, Progress, evaluate
from lightsplit.training.evaluation import LabelledBatches
from lightsplit.training.worker import Source


def make_trigger(experiment: Experiment) -> Trigger:
    """Return the trigger for the dataset's images."""
    shape, classes = FACTS[experiment.dataset]
    return TRIGGERS.create(
        experiment.trigger,
        target=experiment.target_class,
        classes=classes,
        image_shape=shape,
    )


def poisoned(experiment: Experiment, batches: Source, client: int) -> Source:
    """Return the client's batches, poisoned if it is one of the malicious ones."""
    if client not in experiment.malicious_indices():
        return batches
    return PoisonedBatches(
        batches,
        make_trigger(experiment),
        experiment.poison_ratio,
        seed=experiment.seed,
        client=client,
    )


def make_guard(
    experiment: Experiment, server: Server, contract: Contract
) -> Guard | None:
    """Return what watches the clients, if anything does."""
    if not experiment.detector:
        return None
    detector = make_detector(
        experiment.detector,
        clients=experiment.clients,
        **experiment.detector_options(),
    )
    reading = MessageReading(
        server.side.codec, server.side.output_codec, server.formats
    )
    check_collectable(detector.needs, contract, reading)
    backbone = server.side.modules["backbone"]
    return Guard(
        detector,
        EvidenceCollector(detector.needs, reading, backbone),
        backbone,
        on_flag=experiment.on_flag,
        every=experiment.detect_every,
    )


def measure_backdoor(
    experiment: Experiment, clients: Sequence[Client], test: LabelledBatches
) -> dict[str, Any] | None:
    """Return how often the trigger works on the test set, in words of record.json."""
    if not experiment.trigger:
        return None
    trigger = make_trigger(experiment)
    unmarked = Trials(test, trigger, is_marked=False)
    return {
        "trigger": experiment.trigger,
        "target_class": experiment.target_class,
        "malicious_clients": list(experiment.malicious_indices()),
        "trials": sum(len(labels) for _, labels in unmarked),
        "success_rate": success_rate(clients, Trials(test, trigger)),
        "unmarked_rate": success_rate(clients, unmarked),
        "base_rate": None,
    }


def success_rate(clients: Sequence[Client], trials: LabelledBatches) -> float | None:
    """Return how many trials end in the target class; None if there are none."""
    if not any(True for _ in trials):
        return None
    return evaluate(clients, trials).accuracy


def detection_record(
    experiment: Experiment, progress: Progress, *, knows_truth: bool = True
) -> dict[str, Any] | None:
    """Return the last verdict and how good it was, in words of record.json.

    A server that is not told who is malicious cannot say how good it was.
    """
    if not experiment.detector or not progress.verdicts:
        return None
    last = progress.verdicts[-1]
    scores: list[float | None] = [None] * experiment.clients
    for client, score in zip(last["clients"], last["scores"], strict=True):
        scores[client] = score
    quality = score_detection(last["flagged"], experiment.malicious_indices())
    return {
        "detector": experiment.detector,
        "on_flag": experiment.on_flag,
        "threshold": last["threshold"],
        "false_alarm_rate": last["false_alarm_rate"],
        "scores": scores,
        "flagged": last["flagged"],
        "most_suspicious": _highest(scores),
        "times_flagged": [
            sum(client in verdict["flagged"] for verdict in progress.verdicts)
            for client in range(experiment.clients)
        ],
        "verdicts": len(progress.verdicts),
        "undone_turns": progress.undone_turns or [0] * experiment.clients,
        **{k: v if knows_truth else None for k, v in quality._asdict().items()},
    }


def _highest(scores: list[float | None]) -> int | None:
    """Return whose score is the highest; None where nobody stands out."""
    known = [-math.inf if score is None else score for score in scores]
    return known.index(max(known)) if len(set(known)) > 1 else None
