"""One end of an experiment over the network: the server without data, or a client."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from lightsplit.deployment.agreeing import agree_on_key
from lightsplit.deployment.coordinator import Coordinator
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.deployment.network import join, serve
from lightsplit.errors import ConfigError, TransportError
from lightsplit.experiments import pieces
from lightsplit.experiments.backdoors import make_guard, poisoned
from lightsplit.experiments.certificate import measured, promised
from lightsplit.experiments.checks import check_absence
from lightsplit.experiments.client_data import find_data
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.inspection import inspection_record, make_inspector
from lightsplit.experiments.live_metrics import ClientMetrics, LiveMetrics
from lightsplit.experiments.network_ends import (
    client_cuts,
    client_end,
    not_connected,
    server_end,
)
from lightsplit.experiments.own_end import OwnEnd
from lightsplit.experiments.own_secret import OwnSecret
from lightsplit.experiments.recording import DataPlace, begin_recording
from lightsplit.experiments.server_ranks import spread_over_ranks
from lightsplit.experiments.server_record import server_record
from lightsplit.protocol import Contract
from lightsplit.protocol.control import Finished, Grant
from lightsplit.results import RunFolder, tensors
from lightsplit.results.holding import Hold
from lightsplit.runs import Scoring
from lightsplit.runs.callbacks import Callback, Callbacks, RunStart
from lightsplit.runs.plan import RunPlan
from lightsplit.runtime import Client
from lightsplit.transports import ByteMeter

SIDE = "client.safetensors"


class Standing(NamedTuple):
    """A client's progress.

    Attributes:
        steps: steps done so far.
        total: steps of this client in the whole schedule; None if that depends on the
            other owners' data.
        bytes: bytes sent and received so far.
    """

    steps: int
    total: int | None
    bytes: int


Watch = Callable[[Grant | Finished, Callable[[], Standing]], None]


def serve_experiment(  # noqa: PLR0913
    experiment: Experiment,
    folder: RunFolder,
    endpoint: Endpoint,
    *,
    names: list[str] | None = None,
    step_timeout_seconds: float = 60.0,
    turn_timeout_seconds: float | None = None,
    checkpoint_every: int = 0,
    min_clients: int | None = None,
    round_timeout_seconds: float = 30.0,
    watch: Callable[[Coordinator, int], bool] = lambda _run, _port: True,
    callbacks: Sequence[Callback] = (),
) -> dict[str, Any] | None:
    """Serve the run and return its record; None if it was stopped before its end.

    ``callbacks`` are told every evaluation, for the first time when clients can come.
    """
    check_absence(experiment, min_clients)
    server, contract, parameters = server_end(experiment)
    plan = RunPlan(
        turn_steps=pieces.turn_steps(experiment),
        epochs=experiment.training.epochs,
        max_steps=experiment.training.max_steps or 0,
        whole_rounds=experiment.has_rounds,
        local_epochs=experiment.training.local_epochs or 0,
        eval_every=experiment.training.eval_every or 0,
        patience=experiment.training.patience or 0,
        monitor=Scoring.of(experiment.make_task()).monitor,
        checkpoint_every=checkpoint_every,
        step_timeout_seconds=step_timeout_seconds,
        turn_timeout_seconds=turn_timeout_seconds,
        min_clients=min_clients,
        owners_per_round=experiment.owners.owners_per_round or 0,
        round_timeout_seconds=round_timeout_seconds,
        every_client_evaluates=pieces.every_client_evaluates(
            experiment, has_own_data=True
        ),
    )
    is_listening, told = False, Callbacks(callbacks)
    metrics = LiveMetrics(folder, told)

    def watch_listening(coordinator: Coordinator, port: int) -> bool:
        nonlocal is_listening
        if not is_listening:  # a server that cannot listen leaves no files behind
            is_listening = True
            folder.write_experiment(experiment.to_toml())
            settings = experiment.settings()
            told.start(RunStart("serve", folder.path.name, folder.path, settings))
        metrics.update(coordinator.progress.history)
        return watch(coordinator, port)

    with told, spread_over_ranks(server):
        coordinator = serve(
            server,
            contract,
            plan,
            endpoint,
            folder.checkpoint,
            names=names,
            watch=watch_listening,
            guard=make_guard(experiment, server, contract),
            stays=lambda steps: _is_recorded(folder, steps),
        )
        metrics.update(coordinator.progress.history)
        told.is_finished = coordinator.finished is not None
    if coordinator.finished is None:
        return None
    if _is_recorded(folder, coordinator.progress.steps):  # it was over when loaded
        return folder.read_record()
    tensors.save(folder.path / "server.safetensors", server.side.state())
    folder.write_verdicts(coordinator.progress.verdicts)
    record = server_record(experiment, parameters, server, coordinator)
    folder.write_record(record)
    return record


def join_experiment(  # noqa: PLR0913
    experiment: Experiment,
    endpoint: Endpoint,
    options: JoinOptions,
    *,
    name: str,
    data_dir: Path | None = None,
    own_data: Path | None = None,
    watch: Watch = lambda _next, _standing: None,
    callbacks: Sequence[Callback] = (),
) -> dict[str, Any]:
    """Take part in the run to its end and return this client's figures.

    A client whose run has ended does not wait for an absent server: it returns the
    figures from its folder, with ``is_from_folder``.

    Args:
        experiment: the same experiment as the server's.
        endpoint: how to reach the server.
        options: the client's options; its test set and ``watch`` are set here.
        name: the client's name, as in its certificate.
        data_dir: folder of the datasets; this client gets its part when a dataset is
            divided among all clients.
        own_data: a folder with this owner's own files instead, all used for training.
        watch: called with every Grant and with Finished, and with a function that
            returns this client's progress at any time.
        callbacks: receive the figures of every turn of this client.
    """
    if options.records and experiment.sends_once:
        raise ConfigError(
            "a recording is audited by the codes in its steps, and in this run each "
            "code is sent once, before them: start without --record"
        )
    end = OwnEnd(options.state_folder, experiment.to_toml())
    hold = Hold(options.state_folder)

    def watch_held(
        instruction: Grant | Finished, standing: Callable[[], Standing]
    ) -> None:
        hold.take()  # the folder exists by now
        if isinstance(instruction, Grant):
            end.forget()
        watch(instruction, standing)

    try:
        with hold:
            figures = _take_part(
                experiment,
                endpoint,
                replace(options, away=end.patient(options.away)),
                name=name,
                place=DataPlace(own_data, data_dir),
                watch=watch_held,
                callbacks=callbacks,
            )
            if end.figures is None:
                end.keep(figures)
    except TransportError:
        if end.figures is None:
            raise
        return {**end.figures, "is_from_folder": True}
    return {**figures, "is_from_folder": False}


def _take_part(  # noqa: PLR0913
    experiment: Experiment,
    endpoint: Endpoint,
    options: JoinOptions,
    *,
    name: str,
    place: DataPlace,
    watch: Watch,
    callbacks: Sequence[Callback],
) -> dict[str, Any]:
    """Take turns until the server says that the run is over."""
    mine = OwnSecret.find(options.secret, options.state_folder)
    options = with_key(experiment, endpoint, options, mine, name=name)
    secrets = mine.for_run(experiment, options.key)
    data = find_data(
        experiment, secrets.own, data_dir=place.data_dir, own_data=place.own_data
    )
    side, contract = client_end(experiment, secrets, data)
    client = pieces.make_client(experiment, side, not_connected, secrets=secrets)
    client.inspector = make_inspector(experiment, side, secret=secrets.own)

    def standing() -> Standing:
        total = options.meter.by_kind()["total"]
        return Standing(client.steps, data.steps_of(client.index), total)

    def watch_kept(instruction: Grant | Finished) -> None:
        # Write only once the server accepts it: a refused client leaves nothing behind.
        mine.keep()
        if options.records:
            begin_recording(options.tape, experiment, place)
        folder, settings = options.state_folder, experiment.settings()
        told.start(RunStart("join", name, folder, settings))
        watch(instruction, standing)

    def keep(_finished: Finished) -> None:
        if options.state_folder is not None:
            _keep_side(client, contract, options.state_folder)
            RunFolder(options.state_folder).write_experiment(experiment.to_toml())

    with Callbacks(callbacks) as told:
        metrics = ClientMetrics(options.state_folder, told, options.meter)
        finished = join(
            client,
            contract,
            endpoint,
            name=name,
            batches=lambda index: poisoned(experiment, data.batches(index), index),
            options=replace(
                options,
                test=data.test,
                scoring=Scoring.of(experiment.make_task()),
                watch=watch_kept,
                ended=keep,
                turned=metrics.add,
            ),
        )
        told.is_finished = True
    certificate = promised(experiment, client.wire)
    if _has_learnt(client, contract):
        certificate |= measured(client, data.test.samples)
    return _client_figures(client, finished, options.meter, certificate)


def with_key(
    experiment: Experiment,
    endpoint: Endpoint,
    options: JoinOptions,
    mine: OwnSecret,
    *,
    name: str,
) -> JoinOptions:
    """Return the options with a key: the given one, or one for this run alone.

    A key is agreed on where a side travels and every client has a certificate.
    """
    folder = options.state_folder
    if options.key is not None or endpoint.tls is None or folder is None:
        return options
    contract = client_cuts(experiment, mine.for_run(experiment)).contract
    if not contract.shares_side:
        return options
    agreed = agree_on_key(
        contract,
        endpoint,
        folder,
        name=name,
        give_up_seconds=options.give_up_seconds,
        away=options.away,
    )
    options.agreed(agreed)
    return replace(options, key=agreed.key, run=agreed.run)


def _keep_side(client: Client, contract: Contract, folder: Path) -> None:
    """Write the client's side, or load the one in its file where that is better known.

    A client that comes to a finished run without the sides of its turns has first
    weights only, which must not replace trained ones.
    """
    file = folder / SIDE
    if _has_learnt(client, contract) or not file.exists():
        tensors.save(file, client.side.state(), is_secret=True)
    else:
        client.side.load(tensors.load(file))


def _has_learnt(client: Client, contract: Contract) -> bool:
    """Return whether the client's modules took part in training in this process."""
    return contract.shares_side or client.steps > 0


def _is_recorded(folder: RunFolder, steps: int) -> bool:
    """Return whether the existing record covers exactly these steps."""
    if not folder.record_file.is_file():
        return False
    return bool(folder.read_record()["steps"] == steps)


def _client_figures(
    client: Client,
    finished: Finished,
    meter: ByteMeter,
    certificate: dict[str, Any],
) -> dict[str, Any]:
    return {
        "index": client.index,
        "steps": client.steps,
        "stopped_by": finished.reason,
        "bytes": meter.by_kind(),
        "objectives": client.last_turn.objective_means if client.last_turn else {},
        "inspection": inspection_record([client]),
        "certificate": certificate,
    }
