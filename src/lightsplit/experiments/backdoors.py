"""Backdoors of an experiment: malicious clients, the guard, and the success rate."""

from collections.abc import Sequence
from typing import Any

from lightsplit.backdoors import (
    TRIGGERS,
    EvidenceCollector,
    PoisonedBatches,
    Trials,
    Trigger,
    check_collectable,
    make_detectors,
)
from lightsplit.deployment.worker import Source
from lightsplit.errors import ConfigError
from lightsplit.experiments.config import Experiment
from lightsplit.protocol import Contract
from lightsplit.runs import Guard, evaluate
from lightsplit.runs.evaluation import LabelledBatches
from lightsplit.runtime import Client, Server


def make_trigger(experiment: Experiment) -> Trigger:
    """Return the trigger for the dataset's images."""
    if experiment.backdoor is None:
        raise ConfigError("a backdoor needs a trigger; choose one with --trigger")
    task = experiment.make_task()
    return TRIGGERS.create(
        experiment.backdoor.trigger,
        target=experiment.backdoor.target_class,
        classes=task.class_count,
        image_shape=task.image_shape,
    )


def poisoned(experiment: Experiment, batches: Source, client: int) -> Source:
    """Return the client's batches, poisoned if the client is malicious."""
    backdoor = experiment.backdoor
    if backdoor is None or client not in experiment.malicious_indices():
        return batches
    return PoisonedBatches(
        batches,
        make_trigger(experiment),
        backdoor.poison_ratio,
        seed=experiment.seed,
        client=client,
    )


def make_guard(
    experiment: Experiment, server: Server, contract: Contract
) -> Guard | None:
    """Return the guard that watches the clients; None without a detector."""
    if not experiment.detector:
        return None
    detectors = make_detectors(experiment.detector, clients=experiment.owners.clients)
    needs = frozenset().union(*(detector.needs for detector in detectors))
    check_collectable(needs, contract, server.wire)
    backbone = server.side.modules["backbone"]
    return Guard(
        detectors,
        EvidenceCollector(needs, server.wire, backbone),
        backbone,
        on_flag=experiment.guard.on_flag,
        every=experiment.guard.every or 0,
    )


def measure_backdoor(
    experiment: Experiment, clients: Sequence[Client], test: LabelledBatches
) -> dict[str, Any] | None:
    """Return the trigger's success rate on the test set, as record.json has it."""
    if experiment.backdoor is None:
        return None
    trigger = make_trigger(experiment)
    unmarked = Trials(test, trigger, is_marked=False)
    return {
        "trigger": experiment.backdoor.trigger,
        "target_class": experiment.backdoor.target_class,
        "malicious_clients": list(experiment.malicious_indices()),
        "trials": sum(len(labels) for _, labels in unmarked),
        "success_rate": success_rate(clients, Trials(test, trigger)),
        "unmarked_rate": success_rate(clients, unmarked),
        "base_rate": None,
    }


def success_rate(clients: Sequence[Client], trials: LabelledBatches) -> float | None:
    """Return the share of trials classified as the target; None without trials."""
    if not any(True for _ in trials):
        return None
    return evaluate(clients, trials).figures["accuracy"]
