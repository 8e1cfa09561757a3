"""Options of ``serve`` about its status port, and the port itself."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from lightsplit.cli import console
from lightsplit.deployment.coordinator import Coordinator
from lightsplit.errors import ConfigError
from lightsplit.results import RunFolder
from lightsplit.transports import key_files

SHORTEST_TOKEN = 16

StatusAddress = Annotated[
    str | None,
    typer.Option(
        help="host:port for a live page, /healthz and /metrics (Prometheus), such as "
        "127.0.0.1:9464; default: no such port",
        rich_help_panel="Status",
    ),
]
StatusToken = Annotated[
    Path | None,
    typer.Option(
        help="file (mode 0600) with the token that readers must know; needed if the "
        "status is not on this machine alone",
        rich_help_panel="Status",
    ),
]


@contextmanager
def shown_status(
    address: str | None, token: Path | None, folder: RunFolder
) -> Iterator[Callable[[Coordinator], None]]:
    """Show the run on its own port; yield what takes the pictures of it."""
    if address is None:
        if token is not None:
            raise ConfigError("--status-token needs --status-address")
        yield lambda _coordinator: None
        return
    from lightsplit.deployment.status import Board, StatusServer

    board = Board(folder.checkpoint)
    secret = None if token is None else read_token(token)
    with StatusServer(board, address, secret) as server:
        console.warn(f"status on port {server.port}")
        yield board.update


def read_token(file: Path) -> str:
    """Return the token in a file that only its owner can read."""
    try:
        token = key_files.read(file, is_secret=True).decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if len(token) < SHORTEST_TOKEN or not token.isprintable():
        raise ConfigError(
            f"{file} holds no token: expected one line of at least {SHORTEST_TOKEN} "
            "ASCII characters; 'openssl rand -hex 32' makes a good one"
        )
    return token
