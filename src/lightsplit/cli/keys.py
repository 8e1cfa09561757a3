"""``lightsplit keys``: the key that seals what clients hand to each other."""

from pathlib import Path
from typing import Annotated

import typer

from lightsplit.cli import console
from lightsplit.transports.sealing import SealingKey


def keys(
    file: Annotated[Path, typer.Argument(help="where the key goes; must not exist")],
) -> None:
    """Make the key that the clients of a run share and the server must not have.

    With shared heads, the head and tail travel from client to client through the
    server. This key seals them (AES-256-GCM), so that the server can neither read nor
    alter nor replay them. All clients use the same key: to shut one out, make a new key
    for the others.

    [bold]Example[/]

      lightsplit keys head.key
    """
    key = SealingKey.generate()
    with console.reported_errors():
        key.save(file)
    console.out.print(
        f"made  {file}  (fingerprint {key.fingerprint})\n\n"
        "give it to every client, by a way that the server does not see\n"
        "never give it to the server: with it the head can be read",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
