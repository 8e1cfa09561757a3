"""``lightsplit serve``: the server of a networked run."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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
    MinClients,
    RoundTimeout,
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
from lightsplit.cli.runs import chosen_experiment, opened_run
from lightsplit.cli.settings import Settings, takes_experiment
from lightsplit.cli.status import StatusAddress, StatusToken, shown_status
from lightsplit.deployment.coordinator import Coordinator
from lightsplit.deployment.status.board import DOWN, UP
from lightsplit.deployment.status.rate import Rate
from lightsplit.experiments.deploy import serve_experiment
from lightsplit.experiments.server_ranks import assist_experiment
from lightsplit.results import RunFolder
from lightsplit.runs import checkpoint_folder
from lightsplit.runtime.ranks import rank_of_this_process
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
    turn_timeout_seconds: TurnTimeout = None,
    min_clients: MinClients = None,
    round_timeout: RoundTimeout = 30.0,
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
    by SIGINT or SIGTERM: after a turn and saved, or in the middle of one that did not
    end within the step timeout. Resume with 'serve --resume FOLDER'.

    [bold]Examples[/]

      lightsplit serve --clients 2                       plain text, this machine only

      lightsplit serve --clients 2 --address 0.0.0.0:7443 --certs pki/server
      --client alice --client bob

      lightsplit serve --clients 10 --detector cosine-code --on-flag skip

      lightsplit serve --clients 2 --status-address 127.0.0.1:9464      live page

      torchrun --nproc-per-node 2 -m lightsplit serve --clients 8 --rounds parallel
    """
    if rank_of_this_process():
        _assist(file, settings, out=out, resume=resume)
        return
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
            min_clients=min_clients,
            round_timeout_seconds=round_timeout,
            checkpoint_every=checkpoint_every or 0,
            watch=watch,
            callbacks=chosen_callbacks(tensorboard=tensorboard, mlflow=mlflow),
        )
    if record is None:
        text = _stopped(folder, is_cut_short=display.is_cut_short)
        console.err.print(text, soft_wrap=True, highlight=False)
        raise SystemExit(display.exit_code)
    if json:
        console.print_json(record)
    else:
        console.out.print(f"run folder: {folder.path}", soft_wrap=True)
    if record["stopped_by"] == "detector":
        raise SystemExit(console.FLAGGED_EXIT)


def _assist(
    file: Path | None, settings: Settings, *, out: Path | None, resume: Path | None
) -> None:
    """Compute for rank 0, which alone hears signals and says when all is done."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with console.reported_errors():
        experiment = chosen_experiment(file, settings, out=out, resume=resume)
        assist_experiment(experiment)


def _stopped(folder: RunFolder, *, is_cut_short: bool) -> str:
    if is_cut_short:
        return (
            "stopped in the middle of a turn, which is not saved; resume with --resume "
            f"{folder.path}: the run goes on from its last checkpoint"
        )
    if checkpoint_folder.exists(folder.checkpoint):
        return f"stopped and saved; resume with --resume {folder.path}"
    return (
        "stopped before all clients had joined; nothing is saved; "
        f"wait for them again with --resume {folder.path}"
    )


def _already_over(coordinator: Coordinator) -> str:
    """Return what a server does whose run was over before it started."""
    if coordinator.stays:
        return (
            "the run is over and recorded: this server stays for 'lightsplit predict' "
            "until it is stopped, or until every client has come back and heard of the "
            "end"
        )
    missing = [one.name for one in coordinator.members if not one.is_told]
    if not missing:
        return "the run is over and every client knows: this server writes its record"
    return (
        f"the run is over; this server waits for {', '.join(missing)} to come back and "
        "hear of it, at most for the step timeout, then it writes its record"
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
        self.is_cut_short = False

    def watch(self, coordinator: Coordinator, port: int) -> bool:
        """Show the run; return false if the user asked to stop."""
        self.is_cut_short = coordinator.is_cut_short
        if not self._is_announced:
            console.err.print(f"listening on port {port}", highlight=False)
            self._is_announced = True
            if coordinator.finished is not None:
                console.warn(_already_over(coordinator))
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
    progress, at_work = coordinator.progress, coordinator.at_work()
    table = Table(
        "client",
        "state",
        "steps",
        "up",
        "down",
        "other",
        "loss",
        *(("score",) if coordinator.guard else ()),
        *(("waited",) if coordinator.round_number is not None else ()),
        title=f"{_place(coordinator)}, step {progress.steps}, {rate:.1f} steps/s, "
        f"computing {coordinator.computing.share:.0%} of the time",
    )
    for member in coordinator.members:
        table.add_row(*_row(coordinator, member, at_work))
    return table


def _place(coordinator: Coordinator) -> str:
    number = coordinator.round_number
    turns = coordinator.progress.turns
    return f"turn {turns}" if number is None else f"round {number}"


def _row(coordinator: Coordinator, member: Any, at_work: set[int]) -> list[str]:
    counts = member.meter.by_kind()
    up, down = (sum(counts[kind] for kind in kinds) for kinds in (UP, DOWN))
    is_at_work = member.index in at_work
    works = "in turn" if coordinator.round_number is None else "at work"
    state = "away" if member.peer is None else works if is_at_work else "waits"
    return [
        member.name,
        state,
        str(coordinator.progress.client_steps[member.index]),
        *map(console.bytes_text, (up, down, counts["total"] - up - down)),
        "–" if member.loss is None else f"{member.loss:.3f}",
        *([score_text(coordinator, member.index)] if coordinator.guard else []),
        *(
            [f"{member.waited_seconds:.1f} s"]
            if coordinator.round_number is not None
            else []
        ),
    ]
