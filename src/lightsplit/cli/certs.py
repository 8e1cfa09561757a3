"""``lightsplit certs``: the certificates that server and clients authenticate with."""

from pathlib import Path
from typing import Annotated

import typer

from lightsplit.cli import console
from lightsplit.errors import ConfigError
from lightsplit.transports.authority import CA_DAYS, DAYS, MAX_DAYS
from lightsplit.transports.certificates import (
    LOCAL_NAMES,
    CertificateFolder,
    Made,
    check_client_name,
)

ServerNames = Annotated[
    list[str] | None,
    typer.Option(
        help="host name or IP address by which clients reach the server; repeat "
        f"for more; {', '.join(LOCAL_NAMES)} are always included"
    ),
]
Days = Annotated[
    int,
    typer.Option(
        min=1, max=MAX_DAYS, help="days until server and client certificates expire"
    ),
]


def make(
    folder: Annotated[Path, typer.Argument(help="folder for the certificates")],
    *,
    server_name: ServerNames = None,
    client: Annotated[
        list[str] | None,
        typer.Option(help="name of a client; repeat for more, or add them later"),
    ] = None,
    authority_only: Annotated[
        bool,
        typer.Option(
            "--authority-only",
            help="make no key but the authority's; owners and the server send requests",
        ),
    ] = False,
    days: Days = DAYS,
) -> None:
    """Make a certificate authority, and certificates for the server and each client.

    Server and clients authenticate each other with them (mutual TLS). A client's
    identity is the name in its certificate. Existing files are kept, so the same
    command adds clients later. 'lightsplit certs FOLDER' is short for this. Keys are
    made here and must be carried to their owners; with 'certs request' and 'certs
    sign' they never leave their owners.

    [bold]Examples[/]

      lightsplit certs tls --server-name 10.0.0.5 --client alice --client bob

      lightsplit certs tls --client carol                   one more, later

      lightsplit certs tls --authority-only                 then 'request' and 'sign'
    """
    names = list(dict.fromkeys(client or ()))
    made_folder = CertificateFolder(folder)
    with console.reported_errors():
        if authority_only and (names or server_name):
            raise ConfigError("--authority-only makes no server and no clients")
        for name in names:
            check_client_name(name)
        say(made_folder.make_authority(days=max(days, CA_DAYS)))
        if authority_only:
            return
        say(made_folder.make_server(server_name or (), days=days))
        for name in names:
            say(made_folder.make_client(name, days=days))
    _say_who_gets_what(folder, names)


def say(made: Made) -> None:
    """Print which file was made or kept."""
    word = "made" if made.is_new else "kept"
    console.out.print(
        f"{word}  {made.path}  (until {made.expires:%Y-%m-%d})",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )


def _say_who_gets_what(folder: Path, names: list[str]) -> None:
    rows = {
        "the server": "ca.crt  server.crt  server.key",
        **{
            f"client {name}": f"ca.crt  clients/{name}.crt  clients/{name}.key"
            for name in names
        },
        "nobody": "ca.key: anyone who has it can impersonate anyone; keep it offline",
    }
    width = max(len(who) for who in rows)
    lines = [f"\nwho needs what, from {folder}"]
    lines += [f"  {who:<{width}}  {what}" for who, what in rows.items()]
    console.out.print("\n".join(lines), soft_wrap=True, highlight=False, markup=False)
