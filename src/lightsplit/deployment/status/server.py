"""A run's health, metrics and live page over HTTP, on a port of their own.

    /             the page            /page.css /page.js   what it needs
    /state.json   the picture of the run that the page draws
    /metrics      the same for Prometheus
    /healthz      200 while the server's loop moves, else 503; the only open path

Nothing here changes a run. On this machine no token is needed; a Host header that names
another machine is refused then, because a web page elsewhere could have sent it. Beyond
this machine every path but /healthz needs the token, as a bearer or as the password of
HTTP's basic authentication, which browsers ask for.
"""

import base64
import binascii
import hmac
import json
import threading
from http import HTTPStatus
from importlib import resources
from types import TracebackType
from typing import Self

from lightsplit.deployment.status.board import Board
from lightsplit.deployment.status.http_port import Answer, listen
from lightsplit.deployment.status.prometheus import RunCollector
from lightsplit.errors import ConfigError, MissingExtraError
from lightsplit.results.finite import finite
from lightsplit.transports.credentials import is_loopback

_PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
_POLL_SECONDS = 0.05  # how long the end of the server may take
_PLAIN = "text/plain; charset=utf-8"


class StatusServer:
    """Answers HTTP requests about one run in threads of its own.

    Args:
        board: has the newest picture of the run.
        address: host:port; port 0 takes any free one.
        token: that readers must know; needed beyond this machine.
    """

    def __init__(self, board: Board, address: str, token: str | None = None) -> None:
        host, port = _host_and_port(address)
        if token is None and not is_loopback(address):
            raise ConfigError(
                f"{address!r} is not on this machine: anybody could watch the run; "
                "give --status-token FILE, or an address such as 127.0.0.1:9464"
            )
        self._board = board
        self._token = token
        self._collector: RunCollector | None = None
        self._server = listen(host, port, self.answer)
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            args=(_POLL_SECONDS,),
            name="status",
            daemon=True,
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._server.server_address[1])

    def answer(self, path: str, host: str, authorization: str) -> Answer:
        """Return the answer to a request for ``path``."""
        if path == "/healthz":
            return self._health()
        refusal = self._refusal(host, authorization)
        if refusal is not None:
            return refusal
        if path in _PAGE:
            file, kind = _PAGE[path]
            page = resources.files(__package__) / "page" / file
            return Answer(HTTPStatus.OK, kind, page.read_bytes())
        if path == "/state.json":
            text = json.dumps(finite(self._board.picture))
            return Answer(HTTPStatus.OK, "application/json", text.encode())
        if path == "/metrics":
            return self._metrics()
        return _plain(HTTPStatus.NOT_FOUND, "no such page")

    def _refusal(self, host: str, authorization: str) -> Answer | None:
        """Return why this reader may not see the run; None if it may."""
        if self._token is None and not is_loopback(host):
            return _plain(HTTPStatus.FORBIDDEN, f"not the name of this machine: {host}")
        if self._token is not None and not _knows(self._token, authorization):
            return _plain(HTTPStatus.UNAUTHORIZED, "the token is missing or wrong")
        return None

    def _health(self) -> Answer:
        trouble = self._board.trouble
        if trouble is None:
            return _plain(HTTPStatus.OK, "ok")
        return _plain(HTTPStatus.SERVICE_UNAVAILABLE, trouble)

    def _metrics(self) -> Answer:
        try:
            if self._collector is None:
                self._collector = RunCollector(lambda: self._board.picture)
            return Answer(HTTPStatus.OK, _PLAIN, self._collector.text())
        except MissingExtraError as error:
            return _plain(HTTPStatus.NOT_IMPLEMENTED, str(error))


def _host_and_port(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) < 2**16):
        raise ConfigError(f"expected host:port for the status, got {address!r}")
    return host.strip("[]"), int(port)


def _knows(token: str, authorization: str) -> bool:
    kind, _, given = authorization.partition(" ")
    if kind.lower() == "basic":
        try:
            given = base64.b64decode(given, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return False
    elif kind.lower() != "bearer":
        return False
    return hmac.compare_digest(given.encode(), token.encode())


def _plain(status: HTTPStatus, text: str) -> Answer:
    return Answer(status, _PLAIN, f"{text}\n".encode())
