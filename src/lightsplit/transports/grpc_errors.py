"""What a failed gRPC call means, in words that say what to do.

gRPC tells it in a sentence for those who wrote it, and by one status for what passes
and what does not. Here it becomes ``TransportError``, which is worth another try, or
``RemoteError``, which is not.
"""

import errno
import socket
from urllib.parse import quote

import grpc

from lightsplit.errors import ExchangeError, RemoteError, TransportError
from lightsplit.transports.stream import StreamEndedError

_STREAM = socket.SOCK_STREAM
_PERMANENT = {
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
}
_UNSIGNED = "CERTIFICATE_VERIFY_FAILED: "
_OTHER_NAME = ("Hostname Verification", "is not in peer certificate")  # by version
_PLAIN_TEXT = "WRONG_VERSION_NUMBER"
_NEVER_CONNECTED = "failed to connect to all addresses"


def failure_of(address: str, end: StreamEndedError) -> ExchangeError:
    """Return what to raise: only some failures may pass if one tries again."""
    code, details = end.code, end.details
    if code is grpc.StatusCode.OK:
        return TransportError(f"{address}: the server closed the connection")
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return TransportError(f"{address}: {_reason(details, address)}", code="busy")
    if misfit := _misfit(details):
        return RemoteError(f"{address}: {misfit}")
    text = f"{address}: {_reason(details, address)}"
    if details.startswith(_NEVER_CONNECTED) and "Socket closed" in details:
        text += (
            "; if it goes on: either both ends have certificates (--certs) or neither "
            "has, and all are of one authority"
        )
    return RemoteError(text) if code in _PERMANENT else TransportError(text)


def obstacle(address: str) -> str:
    """Return what keeps a server from listening on an address that gRPC refused."""
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=_STREAM)
        for family, kind, protocol, _, where in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(where)
                probe.listen()
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            reason += "; end what listens there, or take another port"
        return reason
    return "gRPC cannot use it"


def _misfit(details: str) -> str:
    """Return how two ends do not fit each other by certificate; empty if they may."""
    if _UNSIGNED in details:
        reason = details.rpartition(_UNSIGNED)[2].removesuffix(": OK")
        return (
            f"not a server of our authority: {reason}; the certificates of both ends "
            "must be made in one folder of 'lightsplit certs'"
        )
    if any(sign in details for sign in _OTHER_NAME):
        return (
            "not a server of our authority under this name: its certificate is for "
            "other hosts; 'lightsplit certs FOLDER --server-name HOST' names one"
        )
    if _PLAIN_TEXT in details:
        return "the server speaks plain text: serve with --certs, or join without it"
    return ""


def _reason(details: str, address: str) -> str:
    """Return the last cause that gRPC names, without its own words around it."""
    reason = details.rpartition("last error: ")[2]
    same = quote(address, safe=":")
    for said in ("UNKNOWN: ", "UNAVAILABLE: ", f"ipv4:{same}: ", f"ipv6:{same}: "):
        reason = reason.removeprefix(said)
    return reason
