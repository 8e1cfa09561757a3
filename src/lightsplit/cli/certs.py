"""``lightsplit certs``: the certificates that the two ends prove themselves with."""

from pathlib import Path
from typing import Annotated

import typer

from lightsplit.cli import console
from lightsplit.transports.certificates import (
    CA_DAYS,
    DAYS,
    LOCAL_NAMES,
    MAX_DAYS,
    CertificateFolder,
    Made,
    check_client_name,
)


def certs(
    folder: Annotated[Path, typer.Argument(help="where the certificates go")],
    *,
    server_name: Annotated[
        list[str] | None,
        typer.Option(
            help="host name or IP address that clients reach the server by; repeat it "
            f"for more; {', '.join(LOCAL_NAMES)} are always included"
        ),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option(help="name of a client; repeat it for more, or add some later"),
    ] = None,
    days: Annotated[
        int,
        typer.Option(
            min=1, max=MAX_DAYS, help="how long the server and clients are valid"
        ),
    ] = DAYS,
) -> None:
    """Make a certificate authority, and certificates for the server and each client.

    With them both ends prove who they are (mutual TLS). A client's identity is the name
    in its certificate. What exists is kept, so the same command adds clients later; a
    .crt that you remove is made anew for the same key.

    [bold]Examples[/]

      lightsplit certs tls --server-name 10.0.0.5 --client alice --client bob

      lightsplit certs tls --client carol                   one more, later
    """
    names = list(dict.fromkeys(client or ()))
    made_folder = CertificateFolder(folder)
    with console.reported_errors():
        for name in names:
            check_client_name(name)
        _say(made_folder.make_authority(days=max(days, CA_DAYS)))
        _say(made_folder.make_server(server_name or (), days=days))
        for name in names:
            _say(made_folder.make_client(name, days=days))
    _say_who_gets_what(folder, names)


def _say(made: Made) -> None:
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
        "nobody": "ca.key: whoever has it can pretend to be anybody; keep it offline",
    }
    width = max(len(who) for who in rows)
    lines = [f"\nwho needs what, from {folder}"]
    lines += [f"  {who:<{width}}  {what}" for who, what in rows.items()]
    console.out.print("\n".join(lines), soft_wrap=True, highlight=False, markup=False)
