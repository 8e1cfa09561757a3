"""A small HTTP port: GET alone, few readers at a time, nobody may dawdle."""

import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from lightsplit.errors import ConfigError

_MOST_READERS = 16
_READER_SECONDS = 10.0
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self'; connect-src 'self'; img-src data:; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Answer(NamedTuple):
    """What the server says to one request."""

    status: HTTPStatus
    kind: str
    content: bytes


class HttpPort(ThreadingHTTPServer):
    """Serves a limited number of readers at a time; a further one is hung up on."""

    daemon_threads = True
    request_queue_size = 64
    reply: Callable[[str, str, str], Answer]

    def __init__(self, address: tuple[Any, ...], family: socket.AddressFamily) -> None:
        self.address_family = family
        self._free = threading.BoundedSemaphore(_MOST_READERS)
        super().__init__(address[:2], _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a reader in a thread, if one is free."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a reader and free its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Forget a reader that broke off."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _READER_SECONDS
    server_version = "lightsplit"
    sys_version = ""
    server: HttpPort

    def do_GET(self) -> None:
        """Answer a request."""
        path = self.path.partition("?")[0]
        host = self.headers.get("Host", "")
        authorization = self.headers.get("Authorization", "")
        answer = self.server.reply(path, host, authorization)
        self.send_response(answer.status)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", 'Basic realm="lightsplit"')
        headers = {
            "Content-Type": answer.kind,
            "Content-Length": str(len(answer.content)),
        }
        for name, value in {**headers, **_HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.content)

    def do_HEAD(self) -> None:
        """Answer a request without its content."""
        self.do_GET()

    def log_message(self, *_args: object) -> None:
        """Say nothing: standard error shows the run."""


def listen(host: str, port: int, reply: Callable[[str, str, str], Answer]) -> HttpPort:
    """Return a port that gives every request to ``reply``: path, host, authorization.

    Requests are answered in ``serve_forever``, which the caller runs.
    """
    try:
        family, *_, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        server = HttpPort(place, family)
    except OSError as error:
        raise ConfigError(
            f"cannot show the status on {host}:{port}: {error.strerror or error}"
        ) from error
    server.reply = reply
    return server
