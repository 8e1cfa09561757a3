"""Options of ``serve``, ``join`` and ``predict`` about the connection."""

from pathlib import Path
from typing import Annotated

import typer

from lightsplit.cli import console
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.transports.credentials import TlsFiles, is_loopback

DEFAULT_ADDRESS = "127.0.0.1:7443"

Address = Annotated[
    str, typer.Option(help="host:port of the server", rich_help_panel="Line")
]
Certificates = Annotated[
    Path | None,
    typer.Option(
        help="folder made by 'lightsplit certs' (mutual TLS); required across machines",
        rich_help_panel="Line",
    ),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure",
        help="allow plain text across machines: anybody on the path can read and "
        "change all messages, and anybody can join under any name",
        rich_help_panel="Line",
    ),
]
ClientNames = Annotated[
    list[str] | None,
    typer.Option(
        help="certificate name of a client that may join; repeat for more, in the "
        "order of their turns; default: the first clients that connect"
    ),
]
StepTimeout = Annotated[
    float,
    typer.Option(min=0.1, help="seconds of silence before a client loses its turn"),
]
TurnTimeout = Annotated[
    float | None,
    typer.Option(
        min=0.1,
        help="seconds that the run waits for one turn or round, whatever its clients "
        "do, before it ends; default: one step timeout per step of the turn and ten "
        "more",
    ),
]
MinClients = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="rounds: owners that are enough for a round to go on; default: all",
    ),
]
RoundTimeout = Annotated[
    float,
    typer.Option(
        min=0,
        help="rounds: seconds that a round waits for owners who are late, if "
        "--min-clients are there",
    ),
]
ClientName = Annotated[
    str,
    typer.Option(help="this client's name, as in its certificate"),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        help="the clients' key, made by 'lightsplit keys' (shared heads); with "
        "--certs, join without it agrees on one that the server cannot read"
    ),
]
SecretFile = Annotated[
    Path | None,
    typer.Option(
        help="file with this client's secret; default: a random secret, drawn at the "
        "first start and kept in the client's folder"
    ),
]


def make_endpoint(address: str, tls: TlsFiles | None, *, insecure: bool) -> Endpoint:
    """Return the server's endpoint; warn if the line to it is open to others."""
    if insecure and tls is None and not is_loopback(address):
        console.alarm(
            f"--insecure: {address} is served in plain text. Anybody on the path can "
            "read and change all messages, and anybody can join under any name"
        )
    return Endpoint(address, tls, insecure)
