"""Where the server of a run is, and how the line to it is protected."""

from dataclasses import dataclass

from lightsplit.errors import ConfigError
from lightsplit.protocol import Expectation, Reader
from lightsplit.transports.credentials import (
    TlsFiles,
    channel_credentials,
    check_plain_text_allowed,
)
from lightsplit.transports.grpc_client import Connection

_LAST_PORT = 65535


@dataclass(frozen=True)
class Endpoint:
    """The address of a server, with the certificates of this end.

    Attributes:
        address: host:port.
        tls: certificate files of this end; None is plain text.
        insecure: allows plain text beyond this machine, which is refused otherwise.
    """

    address: str
    tls: TlsFiles | None = None
    insecure: bool = False

    def check(self) -> None:
        """Raise unless the address has a port, and plain text is allowed there."""
        _, colon, port = self.address.rpartition(":")
        if not (colon and port.isdecimal() and int(port) <= _LAST_PORT):
            raise ConfigError(
                f"expected host:port with a port up to {_LAST_PORT}, "
                f"got {self.address!r}"
            )
        if self.tls is None:
            check_plain_text_allowed(self.address, insecure=self.insecure)


def open_line(endpoint: Endpoint, expectation: Expectation | None) -> Connection:
    """Return a new connection to the server; without steps nothing is expected."""
    endpoint.check()
    credentials = channel_credentials(endpoint.tls) if endpoint.tls else None
    return Connection(endpoint.address, Reader(expectation), credentials)
