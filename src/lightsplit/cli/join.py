"""``lightsplit join``: one data owner in a networked run."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from lightsplit.cli import console
from lightsplit.cli.findings import alarms_text
from lightsplit.cli.link import (
    DEFAULT_ADDRESS,
    Address,
    Certificates,
    ClientName,
    Insecure,
    KeyFile,
    SecretFile,
    make_endpoint,
)
from lightsplit.cli.options import (
    DataDir,
    ExperimentFile,
    FiguresAsJson,
    MLflow,
    OwnData,
    TensorBoard,
    chosen_callbacks,
)
from lightsplit.cli.settings import Settings, resolve, takes_experiment
from lightsplit.deployment import client_log
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.errors import TransportError
from lightsplit.experiments.deploy import Standing, join_experiment
from lightsplit.protocol.control import Finished, Grant
from lightsplit.results.promises import certificate_text
from lightsplit.runtime import Secret
from lightsplit.transports.credentials import TlsFiles
from lightsplit.transports.key_agreement import AgreedKey
from lightsplit.transports.sealing import SealingKey

StateFolder = Annotated[
    Path | None,
    typer.Option(help="folder for this client's side; default: runs/client-NAME"),
]
Report = Annotated[
    bool, typer.Option(help="report losses and accuracies to the server")
]
Rollback = Annotated[
    bool,
    typer.Option(
        "--rollback/--no-rollback",
        help="go along, with a warning, when the server goes back to an earlier turn "
        "or begins another run; --no-rollback refuses and leaves",
    ),
]
Record = Annotated[
    bool,
    typer.Option(
        "--record",
        help="keep every message of this client in its folder, for `lightsplit audit`; "
        "takes as much disk as the traffic",
    ),
]
GiveUp = Annotated[
    float, typer.Option(min=0, help="how many seconds to keep trying to reconnect")
]


@takes_experiment
def join(  # noqa: PLR0913
    *,
    settings: Settings,
    file: ExperimentFile = None,
    name: ClientName = "client",
    address: Address = DEFAULT_ADDRESS,
    certs: Certificates = None,
    insecure: Insecure = False,
    key: KeyFile = None,
    secret: SecretFile = None,
    state: StateFolder = None,
    data: OwnData = None,
    data_dir: DataDir = None,
    report: Report = True,
    rollback: Rollback = True,
    record: Record = False,
    give_up_seconds: GiveUp = 600.0,
    tensorboard: TensorBoard = False,
    mlflow: MLflow = None,
    json: FiguresAsJson = False,
) -> None:
    """Train on this owner's data with a server on another machine.

    Give it the same settings as the server; any difference is refused with both values.
    With --data, the task's data function reads your own folder, and you train on all of
    it. Without --data, the dataset is divided among the clients, and the position among
    them decides which part is this client's.

    Exit codes: 0 done, 1 error, 130 or 143 left by SIGINT or SIGTERM (start the same
    command again to rejoin).

    [bold]Examples[/]

      lightsplit join --task my_task.py --data ./mine --clients 3 --heads private
      --name alice --address host:7443 --certs pki/alice

      lightsplit join --task my_task.py --data ./mine --name alice --record

      lightsplit join --clients 2 --name alice --key clients.key

      lightsplit join --clients 2 --name alice --key clients.key --address host:7443
      --certs pki/alice
    """
    folder = state or Path("runs") / f"client-{name}"
    is_hidden = json or not console.err.is_terminal
    warnings = RollbackWarnings()
    with (
        warnings.repeated_at_the_end(folder),
        console.reported_errors(),
        _leaving(),
        Bar(is_hidden=is_hidden) as bar,
    ):
        options = JoinOptions(
            key=SealingKey.load(key) if key else None,
            secret=Secret.load(secret) if secret else None,
            state_folder=folder,
            reports=report,
            give_up_seconds=give_up_seconds,
            allows_rollback=rollback,
            went_back=warnings.tell,
            agreed=_tell_key,
            away=bar.tell_away,
            records=record,
        )
        tls = TlsFiles.of_client(certs, name) if certs else None
        endpoint = make_endpoint(address, tls, insecure=insecure)
        figures = join_experiment(
            resolve(file, settings),
            endpoint,
            options,
            name=name,
            data_dir=data_dir,
            own_data=data,
            watch=bar.show,
            callbacks=chosen_callbacks(tensorboard=tensorboard, mlflow=mlflow),
        )
    if json:
        console.print_json({**figures, "went_back": warnings.told})
    else:
        if figures["is_from_folder"]:
            console.warn(
                "the server is away, and this client has its part of the run, which is "
                "over; for another run name another --state"
            )
        elif not figures["steps"]:
            console.warn(
                "the run was over before this client took part: nothing was trained "
                "on its data"
            )
        sent = figures["bytes"]["total"]
        console.out.print(f"done: {figures['steps']} steps, {console.bytes_text(sent)}")
        console.out.print(f"this client's part: {folder}", soft_wrap=True)
        if "certificate" in figures:  # a folder of an earlier version has none
            text = certificate_text(figures["certificate"])
            console.out.print(f"certificate: {text}")
        if figures["inspection"]:
            console.out.print(f"alarms: {alarms_text(figures['inspection'])}")


def _tell_key(agreed: AgreedKey) -> None:
    """Show the fingerprint that owners compare, so that nobody else is among them."""
    between = f", agreed between {', '.join(agreed.names)}" if agreed.names else ""
    console.warn(f"the run's key: fingerprint {agreed.key.fingerprint}{between}")
    if agreed.names:
        console.warn(
            "compare it with the other owners by telephone; "
            f"it is kept in {agreed.file}, and 'lightsplit predict --key' takes it"
        )


class RollbackWarnings:
    """Tells the owner that the server went back, at once and again at the end."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def tell(self, text: str) -> None:
        """Print a warning that stands out."""
        self.told.append(text)
        console.alarm(text)

    @contextmanager
    def repeated_at_the_end(self, folder: Path) -> Iterator[None]:
        """Say, however the block ends, how often the server went back.

        Args:
            folder: of the client, with the log of every turn.
        """
        try:
            yield
        finally:
            count = len(self.told)
            if count:
                times = "once" if count == 1 else f"{count} times"
                file = folder / client_log.FILE_NAME
                console.alarm(f"the server went back {times}; {file} has every turn")


class Bar(Progress):
    """Steps of this client, refreshed whenever the bar is drawn."""

    def __init__(self, *, is_hidden: bool) -> None:
        self._standing: Callable[[], Standing] | None = None
        self._told = ""
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[sent]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console.err,
            disable=is_hidden,
        )
        self._steps = self.add_task("waiting for the server", total=None, sent="")

    def show(self, order: Grant | Finished, standing: Callable[[], Standing]) -> None:
        """Show this client's current order; ``standing`` returns its progress."""
        self._standing, self._told = standing, ""
        is_over = isinstance(order, Finished)
        text = "finished" if is_over else f"turn {order.turn}"
        self.update(self._steps, description=text)

    def tell_away(self, error: TransportError) -> None:
        """Report that the server is unreachable, each reason once."""
        if str(error) == self._told:
            return
        self._told = str(error)
        self.update(self._steps, description="waiting for the server")
        text = f"{escape(str(error))}; trying again"
        console.err.print(text, soft_wrap=True, highlight=False)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Draw the bar with the current figures."""
        if self._standing is not None:
            steps, total, sent = self._standing()
            text = console.bytes_text(sent)
            self.update(self._steps, completed=steps, total=total, sent=text)
        return super().get_renderables()


@contextmanager
def _leaving() -> Iterator[None]:
    """Exit with 128 + the signal's number; the server repeats the open turn."""

    def leave(number: int, _frame: FrameType | None) -> None:
        console.err.print("left; start the same command again to rejoin")
        raise SystemExit(128 + number)

    previous = {
        number: signal.signal(number, leave)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
