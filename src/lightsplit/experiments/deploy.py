"""One end of an experiment over the network: the server without data, or a client."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lightsplit.errors import TransportError
from lightsplit.experiments import pieces
from lightsplit.experiments.backdoors import make_guard, poisoned
from lightsplit.experiments.build import split_data
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.cuts import Cuts, make_cuts
from lightsplit.experiments.detection import detection_record
from lightsplit.experiments.inspection import inspection_record, make_inspector
from lightsplit.experiments.record import (
    count_parameters,
    describe_run,
    step_ratio,
)
from lightsplit.protocol import Reply, Request
from lightsplit.protocol.control import Finished, Grant
from lightsplit.results import RunFolder, finite, tensors
from lightsplit.runtime import Client, Server
from lightsplit.training import EVALUATION_BATCH
from lightsplit.training.coordinator import Coordinator
from lightsplit.training.network import (
    Endpoint,
    JoinOptions,
    join,
    log_away,
    serve,
)
from lightsplit.training.plan import Plan
from lightsplit.training.prediction import predicting
from lightsplit.transports import ByteMeter
from lightsplit.transports.sealing import SealingKey


class Standing(NamedTuple):
    """How far a client has come.

    Attributes:
        steps: that it has done.
        total: that it will have done when the schedule is over.
        bytes: that it has sent and received.
    """

    steps: int
    total: int
    bytes: int


Watch = Callable[[Grant | Finished, Callable[[], Standing]], None]


@dataclass(frozen=True)
class Membership:
    """What one client brings to a run.

    Attributes:
        name: as in its certificate.
        folder: where its side is kept.
        key: of the hand-offs.
        data_dir: where the datasets lie.
        reports: whether losses and accuracies are told to the server.
        give_up_seconds: how long to try to reach the server again.
    """

    name: str
    folder: Path
    key: SealingKey | None = None
    data_dir: Path | None = None
    reports: bool = True
    give_up_seconds: float = 600.0


def serve_experiment(  # noqa: PLR0913
    experiment: Experiment,
    folder: RunFolder,
    endpoint: Endpoint,
    *,
    names: list[str] | None = None,
    step_timeout_seconds: float = 60.0,
    checkpoint_every: int = 0,
    watch: Callable[[Coordinator, int], bool] = lambda _run, _port: True,
) -> dict[str, Any] | None:
    """Serve the run and return its record; None if it was stopped before its end."""
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    server = pieces.make_server(experiment, cuts)
    plan = Plan(
        turn_steps=experiment.turn_steps,
        epochs=experiment.epochs,
        max_steps=experiment.max_steps,
        eval_every=experiment.eval_every,
        patience=experiment.patience,
        checkpoint_every=checkpoint_every,
        step_timeout_seconds=step_timeout_seconds,
    )
    # Not before it is watched: a run that cannot listen leaves nothing behind.
    begin = cache(lambda: folder.write_experiment(experiment.to_toml()))

    def watch_begun(coordinator: Coordinator, port: int) -> bool:
        begin()
        return watch(coordinator, port)

    coordinator = serve(
        server,
        cuts.contract,
        plan,
        endpoint,
        folder.checkpoint,
        names=names,
        watch=watch_begun,
        guard=make_guard(experiment, server, cuts.contract),
    )
    folder.write_metrics(coordinator.progress.history)
    if coordinator.finished is None:
        return None
    if _is_recorded(folder, coordinator):  # the run was over when it was loaded
        return folder.read_record()
    tensors.save(folder.path / "server.safetensors", server.side.state())
    folder.write_verdicts(coordinator.progress.verdicts)
    record = _record(experiment, cuts, server, coordinator)
    folder.write_record(record)
    return record


def join_experiment(
    experiment: Experiment,
    endpoint: Endpoint,
    membership: Membership,
    *,
    watch: Watch = lambda _order, _standing: None,
    away: Callable[[TransportError], None] = log_away,
) -> dict[str, Any]:
    """Take part in the run to its end and return this client's figures.

    ``watch`` is told of every order, with a function that says at any time how far this
    client is; ``away`` whenever the server could not be reached and is tried again.
    """
    dataset = pieces.load_dataset(experiment, membership.data_dir)
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    batches = [
        pieces.make_batches(experiment, dataset.train, held, index)
        for index, held in enumerate(split_data(experiment, dataset))
    ]
    codec = cuts.codec
    modules = [cuts.parts.whole, codec.encoder, codec.decoder]
    pieces.check_single_samples(batches, modules)
    side = pieces.make_client_side(experiment, cuts)
    meter = ByteMeter()
    client = pieces.make_client(experiment, side, _not_connected)
    client.inspector = make_inspector(experiment, side)
    steps_of = cache(pieces.make_schedule(experiment, batches).steps_of)

    def standing() -> Standing:
        total = meter.by_kind()["total"]
        return Standing(client.steps, steps_of(client.index), total)

    finished = join(
        client,
        cuts.contract,
        endpoint,
        name=membership.name,
        batches=lambda index: poisoned(experiment, batches[index], index),
        options=JoinOptions(
            key=membership.key,
            state_folder=membership.folder,
            test=pieces.TestBatches(dataset.test, EVALUATION_BATCH),
            reports=membership.reports,
            give_up_seconds=membership.give_up_seconds,
            meter=meter,
            watch=lambda order: watch(order, standing),
            away=away,
        ),
    )
    file = membership.folder / "client.safetensors"
    tensors.save(file, side.state(), is_secret=True)
    return _client_figures(client, finished, meter)


def predict_experiment(
    experiment: Experiment,
    endpoint: Endpoint,
    *,
    name: str,
    key: SealingKey | None = None,
    folder: Path | None = None,
    data_dir: Path | None = None,
) -> tuple[list[int], list[int]]:
    """Return predictions and labels of the test set."""
    dataset = pieces.load_dataset(experiment, data_dir)
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    side = pieces.make_client_side(experiment, cuts)
    client = pieces.make_client(experiment, side, _not_connected)
    if folder is not None:
        side.load(tensors.load(folder / "client.safetensors"))
    predictions: list[int] = []
    labels: list[int] = []
    with predicting(client, cuts.contract, endpoint, name=name, key=key):
        for inputs, truth in pieces.TestBatches(dataset.test, EVALUATION_BATCH):
            predictions += client.predict(inputs).argmax(1).tolist()
            labels += truth.tolist()
    return predictions, labels


def _is_recorded(folder: RunFolder, coordinator: Coordinator) -> bool:
    """Say whether the record at hand is of these very steps, with all their bytes."""
    if not folder.record_file.is_file():
        return False
    return bool(folder.read_record()["steps"] == coordinator.progress.steps)


def _record(
    experiment: Experiment, cuts: Cuts, server: Server, coordinator: Coordinator
) -> dict[str, Any]:
    record: dict[str, Any] = finite(
        {
            **describe_run(experiment, cuts.contract, server),
            **_figures(coordinator),
            "parameters": count_parameters(*cuts[:3]),
            "detection": detection_record(
                experiment,
                coordinator.progress,
                knows_truth=bool(experiment.trigger),
            ),
        }
    )
    return record


def _figures(coordinator: Coordinator) -> dict[str, Any]:
    progress = coordinator.progress
    last = progress.history[-1] if progress.history else {}
    epochs, rounds = coordinator.position
    return {
        "test_accuracy": last.get("test_accuracy"),
        "best_test_accuracy": progress.best_accuracy if progress.history else None,
        "test_loss": last.get("test_loss"),
        "client_accuracies": last.get("client_accuracies", []),
        "stopped_by": coordinator.finished.reason if coordinator.finished else "",
        "steps": progress.steps,
        "samples": progress.samples,
        "epochs": epochs,
        "rounds": rounds,
        "seconds": round(progress.seconds, 3),
        "step_ratio": step_ratio(progress, coordinator.contract),
        "bytes": progress.bytes,
        "clients": {
            member.name: member.meter.by_kind() for member in coordinator.members
        },
    }


def _not_connected(_request: Request) -> Reply:
    raise TransportError("not connected")


def _client_figures(
    client: Client, finished: Finished, meter: ByteMeter
) -> dict[str, Any]:
    return {
        "index": client.index,
        "steps": client.steps,
        "stopped_by": finished.reason,
        "bytes": meter.by_kind(),
        "inspection": inspection_record([client]),
    }
