"""The backdoor part of an experiment: who plants what, who watches, if it works."""

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
    make_detectors,
)
from lightsplit.experiments.config import FACTS, Experiment
from lightsplit.protocol import Contract
from lightsplit.runtime import Client, Server
from lightsplit.training import Guard, evaluate
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
    detectors = make_detectors(
        experiment.detectors(),
        clients=experiment.clients,
        **experiment.detector_options(),
    )
    needs = frozenset().union(*(detector.needs for detector in detectors))
    reading = MessageReading(
        server.side.codec, server.side.output_codec, server.formats
    )
    check_collectable(needs, contract, reading)
    backbone = server.side.modules["backbone"]
    return Guard(
        detectors,
        EvidenceCollector(needs, reading, backbone),
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
