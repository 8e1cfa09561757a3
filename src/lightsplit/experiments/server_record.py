"""The final figures of a networked run at its server (docs/record.md)."""

from typing import Any

from lightsplit.deployment.coordinator import Coordinator
from lightsplit.experiments.certificate import counted
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.detection import detection_record
from lightsplit.experiments.raw_traffic import step_ratio, total_ratio
from lightsplit.experiments.record import describe_run, test_figures
from lightsplit.results import finite
from lightsplit.runtime import Server


def server_record(
    experiment: Experiment,
    parameters: dict[str, int],
    server: Server,
    coordinator: Coordinator,
) -> dict[str, Any]:
    """Return the record of a run that has ended, as its server knows it.

    ``parameters`` are those of every part, of which the server holds one.
    """
    contract = coordinator.contract
    described = describe_run(experiment, contract, server.wire)
    codes = counted(coordinator.codes.worst())
    record: dict[str, Any] = finite(
        {
            **described,
            "certificate": described["certificate"] | codes,
            **_figures(coordinator),
            "total_ratio": total_ratio(experiment, coordinator.progress, contract),
            "parameters": parameters,
            "detection": detection_record(
                experiment,
                coordinator.progress,
                knows_truth=experiment.backdoor is not None,
            ),
        }
    )
    return record


def _figures(coordinator: Coordinator) -> dict[str, Any]:
    progress = coordinator.progress
    epochs, rounds = coordinator.position
    return {
        **test_figures(coordinator.state),
        "stopped_by": coordinator.finished.reason if coordinator.finished else "",
        "steps": progress.steps,
        "samples": progress.samples,
        "epochs": epochs,
        "rounds": rounds,
        "seconds": round(progress.seconds, 3),
        "computing_seconds": round(coordinator.computing.seconds, 3),
        "step_ratio": step_ratio(progress, coordinator.contract),
        "bytes": progress.bytes,
        "clients": {
            member.name: member.meter.by_kind() for member in coordinator.members
        },
        **_rounds(coordinator),
    }


def _rounds(coordinator: Coordinator) -> dict[str, Any]:
    """Return how often owners were in parallel rounds, and waited for the others."""
    if coordinator.round_number is None:
        return {}
    steps = coordinator.progress.client_steps
    return {
        "attendance": {one.name: steps[one.index] for one in coordinator.members},
        "waited_seconds": {
            one.name: round(one.waited_seconds, 3) for one in coordinator.members
        },
    }
