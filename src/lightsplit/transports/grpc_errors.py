"""The meaning of a failed gRPC call, in words that say what to do.

gRPC describes a failure in terms of its own parts, and uses one status for failures
that pass and failures that last. Here a failure becomes a ``TransportError``, which is
worth another try, or a ``RemoteError``, which is not.
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
_OTHER_NAME = ("Hostname Verification", "is not in peer certificate")  # old, new gRPC
_PLAIN_TEXT = "WRONG_VERSION_NUMBER"
_NEVER_CONNECTED = "failed to connect to all addresses"


def failure_of(address: str, end: StreamEndedError) -> ExchangeError:
    """Return the error to raise for a stream to ``address`` that ended."""
    code, details = end.code, end.details
    if code is grpc.StatusCode.OK:
        return TransportError(f"{address}: the server closed the connection")
    if code is grpc.StatusCode.CANCELLED:
        return TransportError(f"{address}: the server cut the line off")
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return TransportError(f"{address}: {_reason(details, address)}", code="busy")
    if misfit := _misfit(details):
        return RemoteError(f"{address}: {misfit}")
    text = f"{address}: {_reason(details, address)}"
    if details.startswith(_NEVER_CONNECTED) and "Socket closed" in details:
        text += (
            "; if this persists, give both ends certificates of one authority "
            "(--certs), or neither"
        )
    return RemoteError(text) if code in _PERMANENT else TransportError(text)


def obstacle(address: str) -> str:
    """Return the reason why a server cannot listen on an address."""
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
            reason += "; stop the program that listens there, or use another port"
        return reason
    return "gRPC cannot use it"


def _misfit(details: str) -> str:
    """Return why the certificates of the two ends do not match; empty if they may."""
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
    """Return the last cause that gRPC names, without its prefixes."""
    reason = details.rpartition("last error: ")[2]
    same = quote(address, safe=":")
    for prefix in ("UNKNOWN: ", "UNAVAILABLE: ", f"ipv4:{same}: ", f"ipv6:{same}: "):
        reason = reason.removeprefix(prefix)
    return reason
