"""``lightsplit keys``: the key that seals a shared head on its way between clients."""

from pathlib import Path
from typing import Annotated

import typer

from lightsplit.cli import console
from lightsplit.transports.sealing import SealingKey


def keys(
    file: Annotated[Path, typer.Argument(help="file for the key; must not exist yet")],
) -> None:
    """Make the key that the clients of a run share and the server must not have.

    Shared heads and tails travel from client to client through the server. This key
    seals them (AES-256-GCM), so that the server can neither read, alter nor replay
    them. All clients use the same key: to exclude a client, make a new key for the
    others.

    [bold]Example[/]

      lightsplit keys head.key
    """
    key = SealingKey.generate()
    with console.reported_errors():
        key.save(file)
    console.out.print(
        f"made  {file}  (fingerprint {key.fingerprint})\n\n"
        "give it to every client over a channel that the server cannot see\n"
        "never give it to the server, which could then read the head",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
