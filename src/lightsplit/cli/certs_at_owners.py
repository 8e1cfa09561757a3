"""``lightsplit certs request``, ``sign``, ``renew`` and ``revoke``.

The key of an owner is made at the owner and stays there; requests and certificates go
to and fro instead.
"""

from pathlib import Path
from typing import Annotated

import typer

from lightsplit.cli import console
from lightsplit.cli.certs import Days, ServerNames, say
from lightsplit.errors import ConfigError
from lightsplit.transports.authority import DAYS
from lightsplit.transports.certificate_requests import (
    CertificateRequest,
    make_client_request,
    make_server_request,
)
from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.registrar import SERVER, Registrar

AuthorityFolder = Annotated[
    Path, typer.Argument(help="folder of the authority, made by 'lightsplit certs'")
]
Client = Annotated[str | None, typer.Option(help="name of the client")]
Server = Annotated[bool, typer.Option("--server", help="it is the server's")]


def request(
    folder: Annotated[Path, typer.Argument(help="folder for key and request")],
    *,
    client: Client = None,
    server: Server = False,
    server_name: ServerNames = None,
) -> None:
    """Make a key that stays here, and a request for its certificate.

    Send NAME.csr to the authority and tell it the fingerprint over another channel.
    Put the NAME.crt and the ca.crt that come back into this folder.

    [bold]Examples[/]

      lightsplit certs request mine --client alice

      lightsplit certs request mine --server --server-name host.example.org
    """
    with console.reported_errors():
        name = _party(client, is_server=server)
        if name == SERVER:
            made = make_server_request(folder, server_name or ())
        elif server_name:
            raise ConfigError("--server-name belongs to --server: clients have none")
        else:
            made = make_client_request(folder, name)
    key = made.path.with_suffix(".key")
    _print(f"made  {made.path}  (fingerprint of the key: {made.fingerprint})")
    _print(f"      {key} stays here: nobody else needs it")


def sign(
    folder: AuthorityFolder,
    request: Annotated[Path, typer.Argument(help="the .csr that the owner sent")],
    *,
    client: Client = None,
    server: Server = False,
    days: Days = DAYS,
) -> None:
    """Sign an owner's request, at the authority.

    The name must be given: it is for the authority to say who an owner is. Compare the
    fingerprint with the owner before you send the certificate back.

    [bold]Example[/]

      lightsplit certs sign pki alice.csr --client alice
    """
    with console.reported_errors():
        name = _party(client, is_server=server)
        found = CertificateRequest.load(request)
        authority = CertificateFolder(folder)
        made = Registrar(authority).sign(name, found, days=days)
    say(made)
    _print(f"fingerprint of the key: {found.fingerprint}")
    _print(f"send back: {made.path}  {authority.ca}")


def renew(
    folder: AuthorityFolder,
    *,
    client: Client = None,
    server: Server = False,
    days: Days = DAYS,
) -> None:
    """Issue a certificate again for the same key, at the authority.

    A server notices a new server.crt in its folder by itself, and so does a client at
    its next connection: neither is restarted.

    [bold]Example[/]

      lightsplit certs renew pki --server --days 90
    """
    with console.reported_errors():
        name = _party(client, is_server=server)
        say(Registrar(CertificateFolder(folder)).renew(name, days=days))


def revoke(
    folder: AuthorityFolder,
    client: Annotated[str, typer.Argument(help="name of the client")],
) -> None:
    """Put all certificates of a client on the authority's list, ca.crl.

    Copy ca.crl beside the server's ca.crt. A running server notices it within a second:
    it closes the client's stream and refuses its next connection.

    [bold]Example[/]

      lightsplit certs revoke pki alice
    """
    with console.reported_errors():
        if client == SERVER:
            raise ConfigError(
                "clients read no list, so a server's certificate cannot be revoked; "
                "keep it short-lived (--days), or make a new authority"
            )
        authority = CertificateFolder(folder)
        serials = Registrar(authority).revoke(client)
    for serial in serials:
        _print(f"revoked  {client}  serial {serial:x}")
    _print(f"copy {authority.revoked} beside ca.crt at the server")


def _party(client: str | None, *, is_server: bool) -> str:
    if (client is None) == (not is_server):
        raise ConfigError("expected either --client NAME or --server")
    return SERVER if client is None else client


def _print(text: str) -> None:
    console.out.print(text, soft_wrap=True, highlight=False, markup=False)
