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
)
from lightsplit.cli.options import DataDir, ExperimentFile, FiguresAsJson
from lightsplit.cli.settings import Settings, resolve, takes_experiment
from lightsplit.errors import TransportError
from lightsplit.experiments.deploy import Membership, Standing, join_experiment
from lightsplit.protocol.control import Finished, Grant
from lightsplit.training.network import Endpoint
from lightsplit.transports.credentials import TlsFiles
from lightsplit.transports.sealing import SealingKey

StateFolder = Annotated[
    Path | None,
    typer.Option(help="folder for this client's side; default: runs/client-NAME"),
]
Report = Annotated[bool, typer.Option(help="tell the server losses and accuracies")]
GiveUp = Annotated[
    float, typer.Option(min=0, help="how long to try to reach the server again")
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
    state: StateFolder = None,
    data_dir: DataDir = None,
    report: Report = True,
    give_up_seconds: GiveUp = 600.0,
    json: FiguresAsJson = False,
) -> None:
    """Train on this owner's data with a server elsewhere.

    Takes the same settings as the server; any difference is refused with both values.
    The client's part of the data is that of its position among the clients. Exit codes:
    0 done, 1 error, 130 or 143 left by SIGINT or SIGTERM (start it again to come back).

    [bold]Examples[/]

      lightsplit join --clients 2 --name alice --key clients.key

      lightsplit join --clients 2 --name alice --key clients.key --address host:7443
      --certs pki/alice
    """
    folder = state or Path("runs") / f"client-{name}"
    is_hidden = json or not console.err.is_terminal
    with console.reported_errors(), _leaving(), Bar(is_hidden=is_hidden) as bar:
        membership = Membership(
            name=name,
            folder=folder,
            key=SealingKey.load(key) if key else None,
            data_dir=data_dir,
            reports=report,
            give_up_seconds=give_up_seconds,
        )
        tls = TlsFiles.of_client(certs, name) if certs else None
        endpoint = Endpoint(address, tls, insecure)
        figures = join_experiment(
            resolve(file, settings),
            endpoint,
            membership,
            watch=bar.show,
            away=bar.tell_away,
        )
    if json:
        console.print_json(figures)
    else:
        sent = figures["bytes"]["total"]
        console.out.print(f"done: {figures['steps']} steps, {console.bytes_text(sent)}")
        console.out.print(f"this client's part: {folder}", soft_wrap=True)
        if figures["inspection"]:
            console.out.print(f"alarms: {alarms_text(figures['inspection'])}")


class Bar(Progress):
    """Steps of this client, read off whenever the bar is drawn."""

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
        """Show what this client is to do now; ``standing`` says how far it is."""
        self._standing, self._told = standing, ""
        is_over = isinstance(order, Finished)
        text = "finished" if is_over else f"turn {order.turn}"
        self.update(self._steps, description=text)

    def tell_away(self, error: TransportError) -> None:
        """Say that the server is away; the same is not said twice."""
        if str(error) == self._told:
            return
        self._told = str(error)
        self.update(self._steps, description="waiting for the server")
        text = f"{escape(str(error))}; trying again"
        console.err.print(text, soft_wrap=True, highlight=False)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Draw the bar as things stand."""
        if self._standing is not None:
            steps, total, sent = self._standing()
            text = console.bytes_text(sent)
            self.update(self._steps, completed=steps, total=total, sent=text)
        return super().get_renderables()


@contextmanager
def _leaving() -> Iterator[None]:
    """Leave with 128 + the signal's number; nothing is lost, the turn is repeated."""

    def leave(number: int, _frame: FrameType | None) -> None:
        console.err.print("left; start the same command again to come back")
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
