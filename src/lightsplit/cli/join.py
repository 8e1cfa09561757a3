"""``lightsplit join``: one data owner in a networked run."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

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
from lightsplit.experiments.deploy import Membership, join_experiment
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
    with console.reported_errors(), _leaving(), _bar(is_quiet=json) as bar:
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
            resolve(file, settings), endpoint, membership, watch=bar.show
        )
    if json:
        console.print_json(figures)
    else:
        sent = figures["bytes"]["total"]
        console.out.print(f"done: {figures['steps']} steps, {console.bytes_text(sent)}")
        console.out.print(f"this client's part: {folder}", soft_wrap=True)
        if figures["inspection"]:
            console.out.print(f"alarms: {alarms_text(figures['inspection'])}")


class Bar:
    """Turns and steps of this client."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("waiting for the server", total=None)

    def show(self, order: Grant | Finished, steps: int, sent_bytes: int) -> None:
        """Show an order, how far this client is and what it has sent and received."""
        if isinstance(order, Finished):
            text = "finished"
        else:
            text = f"turn {order.turn}: {order.steps} steps from {order.first_step}"
        self._progress.update(
            self._task,
            description=f"{text}  {steps} steps  {console.bytes_text(sent_bytes)}",
        )


@contextmanager
def _bar(*, is_quiet: bool) -> Iterator[Bar]:
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console.err,
        disable=is_quiet or not console.err.is_terminal,
    ) as progress:
        yield Bar(progress)


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
