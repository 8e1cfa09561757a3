"""``lightsplit serve``: the server of a networked run."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rich.live import Live
from rich.table import Table

from lightsplit.cli import console
from lightsplit.cli.findings import flags_text, score_text
from lightsplit.cli.link import (
    DEFAULT_ADDRESS,
    Address,
    Certificates,
    ClientNames,
    Insecure,
    StepTimeout,
    TurnTimeout,
    make_endpoint,
)
from lightsplit.cli.options import (
    CheckpointEvery,
    ExperimentFile,
    MLflow,
    RecordAsJson,
    Resume,
    RunOut,
    TensorBoard,
    chosen_callbacks,
)
from lightsplit.cli.runs import opened_run
from lightsplit.cli.settings import Settings, takes_experiment
from lightsplit.cli.status import StatusAddress, StatusToken, shown_status
from lightsplit.deployment.coordinator import Coordinator
from lightsplit.deployment.status.board import DOWN, UP
from lightsplit.deployment.status.rate import Rate
from lightsplit.experiments.deploy import serve_experiment
from lightsplit.results import RunFolder
from lightsplit.runs import checkpoint_folder
from lightsplit.transports.credentials import TlsFiles


@takes_experiment
def serve(  # noqa: PLR0913
    *,
    settings: Settings,
    file: ExperimentFile = None,
    address: Address = DEFAULT_ADDRESS,
    certs: Certificates = None,
    insecure: Insecure = False,
    client: ClientNames = None,
    out: RunOut = None,
    resume: Resume = None,
    step_timeout_seconds: StepTimeout = 60.0,
    turn_timeout_seconds: TurnTimeout = 0.0,
    checkpoint_every: CheckpointEvery = None,
    status_address: StatusAddress = None,
    status_token: StatusToken = None,
    tensorboard: TensorBoard = False,
    mlflow: MLflow = None,
    json: RecordAsJson = False,
) -> None:
    """Wait for the clients, grant them turns, and train the backbone.

    The server needs no data. Clients run 'lightsplit join' with the same settings. Exit
    codes: 0 done, 1 error, 3 ended by a detector (--on-flag stop), 130 or 143 stopped
    by SIGINT or SIGTERM after a turn and saved; resume with 'serve --resume FOLDER'.

    [bold]Examples[/]

      lightsplit serve --clients 2                       plain text, this machine only

      lightsplit serve --clients 2 --address 0.0.0.0:7443 --certs pki/server
      --client alice --client bob

      lightsplit serve --clients 10 --detector cosine-code --on-flag skip

      lightsplit serve --clients 2 --status-address 127.0.0.1:9464      live page
    """
    with (
        console.reported_errors(),
        opened_run(file, settings, out=out, resume=resume) as (experiment, folder),
        shown_status(status_address, status_token, folder) as show,
        _display(is_quiet=json) as display,
    ):

        def watch(coordinator: Coordinator, port: int) -> bool:
            show(coordinator)
            return display.watch(coordinator, port)

        tls = TlsFiles.of_server(certs) if certs else None
        record = serve_experiment(
            experiment,
            folder,
            make_endpoint(address, tls, insecure=insecure),
            names=client or None,
            step_timeout_seconds=step_timeout_seconds,
            turn_timeout_seconds=turn_timeout_seconds,
            checkpoint_every=checkpoint_every or 0,
            watch=watch,
            callbacks=chosen_callbacks(tensorboard=tensorboard, mlflow=mlflow),
        )
    if record is None:
        console.err.print(_stopped(folder), soft_wrap=True, highlight=False)
        raise SystemExit(display.exit_code)
    if json:
        console.print_json(record)
    else:
        console.out.print(f"run folder: {folder.path}", soft_wrap=True)
    if record["stopped_by"] == "detector":
        raise SystemExit(console.FLAGGED_EXIT)


def _stopped(folder: RunFolder) -> str:
    if checkpoint_folder.exists(folder.checkpoint):
        return f"stopped and saved; resume with --resume {folder.path}"
    return (
        "stopped before all clients had joined; nothing is saved; "
        f"wait for them again with --resume {folder.path}"
    )


def _evaluation(line: dict[str, Any]) -> str:
    return f"epoch {line['epoch']}, step {line['step']}: " + ", ".join(
        console.figure_text(key.removeprefix("test_"), value)
        for key, value in line.items()
        if key.startswith("test_")
    )


class Display:
    """The live table; it also remembers whether the user asked to stop."""

    def __init__(self, live: Live | None) -> None:
        self._live = live
        self._rate = Rate()
        self._is_announced = False
        self._told = 0  # number of verdicts reported so far
        self._evaluations: int | None = None  # reported, or from before this server
        self._present: set[str] = set()
        self.exit_code = 0

    def watch(self, coordinator: Coordinator, port: int) -> bool:
        """Show the run; return false if the user asked to stop."""
        if not self._is_announced:
            console.err.print(f"listening on port {port}", highlight=False)
            self._is_announced = True
        self._tell_evaluations(coordinator)
        self._tell_verdicts(coordinator)
        if self._live is not None:
            rate = self._rate.at(time.monotonic(), coordinator.progress.steps)
            self._live.update(_table(coordinator, rate))
        else:
            self._tell_members(coordinator)
        return not self.exit_code

    def _tell_evaluations(self, coordinator: Coordinator) -> None:
        history = list(coordinator.progress.history)  # it may grow meanwhile
        if self._evaluations is None:
            self._evaluations = len(history)
        for line in history[self._evaluations :]:
            console.err.print(_evaluation(line), soft_wrap=True, highlight=False)
        self._evaluations = len(history)

    def _tell_members(self, coordinator: Coordinator) -> None:
        """Report who joined and who left when no table shows it."""
        present = {one.name for one in coordinator.members if one.peer is not None}
        for name in sorted(present ^ self._present):
            text = "has come" if name in present else "is away"
            console.err.print(f"{name} {text}", highlight=False)
        self._present = present

    def _tell_verdicts(self, coordinator: Coordinator) -> None:
        verdicts, guard = list(coordinator.progress.verdicts), coordinator.guard
        if guard is None:
            return
        names = {member.index: member.name for member in coordinator.members}
        for verdict in verdicts[self._told :]:
            if text := flags_text(verdict, guard.on_flag, names):
                console.err.print(text, soft_wrap=True, highlight=False)
        self._told = len(verdicts)

    def stop(self, number: int, _frame: FrameType | None) -> None:
        """Ask the run to stop; the second time, stop at once."""
        if self.exit_code:
            raise KeyboardInterrupt
        self.exit_code = 128 + number


@contextmanager
def _display(*, is_quiet: bool) -> Iterator[Display]:
    live = Live(console=console.err, refresh_per_second=4, transient=False)
    display = Display(live if console.err.is_terminal and not is_quiet else None)
    previous = {
        number: signal.signal(number, display.stop)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        if display._live is not None:
            with live:
                yield display
        else:
            yield display
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _table(coordinator: Coordinator, rate: float) -> Table:
    progress, current = coordinator.progress, coordinator.current_assignment()
    table = Table(
        "client",
        "state",
        "steps",
        "up",
        "down",
        "other",
        "loss",
        *(("score",) if coordinator.guard else ()),
        title=f"turn {progress.turns}, step {progress.steps}, {rate:.1f} steps/s",
    )
    for member in coordinator.members:
        table.add_row(*_row(coordinator, member, current))
    return table


def _row(coordinator: Coordinator, member: Any, current: Any) -> list[str]:
    counts = member.meter.by_kind()
    up, down = (sum(counts[kind] for kind in kinds) for kinds in (UP, DOWN))
    is_in_turn = current is not None and current.client == member.index
    state = "away" if member.peer is None else "in turn" if is_in_turn else "waits"
    return [
        member.name,
        state,
        str(coordinator.progress.client_steps[member.index]),
        *map(console.bytes_text, (up, down, counts["total"] - up - down)),
        "–" if member.loss is None else f"{member.loss:.3f}",
        *([score_text(coordinator, member.index)] if coordinator.guard else []),
    ]
