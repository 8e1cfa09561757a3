"""Transports and mods: how a request gets its reply.

A transport turns a request into a reply; in one process it is the server's own
``handle``. A mod sees every request and reply on the way: it counts, records or alters
them, and the two ends do not notice.
"""

from collections.abc import Callable
from typing import Protocol

from lightsplit.protocol import Reply, Request

Send = Callable[[Request], Reply]


class Mod(Protocol):
    """A function between client and server."""

    def __call__(self, request: Request, call_next: Send) -> Reply:
        """Return the reply to ``request``, usually that of ``call_next``."""
        ...


def through(mod: Mod, send: Send) -> Send:
    """Return ``send`` with ``mod`` in front of it."""
    return lambda request: mod(request, send)
