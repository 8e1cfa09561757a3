"""What ``serve``, ``join`` and ``predict`` ask about the line between them."""

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_ADDRESS = "127.0.0.1:7443"

Address = Annotated[
    str, typer.Option(help="host:port of the server", rich_help_panel="Line")
]
Certificates = Annotated[
    Path | None,
    typer.Option(
        help="folder made by 'lightsplit certs': mutual TLS, needed off this machine",
        rich_help_panel="Line",
    ),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure",
        help="plain text beyond this machine: everybody on the way can read and change "
        "all messages, and anybody can join under any name",
        rich_help_panel="Line",
    ),
]
ClientNames = Annotated[
    list[str] | None,
    typer.Option(
        help="a client that may join, by its certificate's name; repeat, in the "
        "order of turns. Without it: whoever comes first"
    ),
]
StepTimeout = Annotated[
    float,
    typer.Option(min=0.1, help="a client in turn that is silent longer is cut off"),
]
ClientName = Annotated[
    str,
    typer.Option(help="this client's name, as in its certificate"),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(help="the clients' key, made by 'lightsplit keys' (shared heads)"),
]
