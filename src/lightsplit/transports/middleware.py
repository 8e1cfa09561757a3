"""How a request gets its reply, and what may stand in between.

A transport is anything that turns a request into a reply; in one process that is the
server's own ``handle``. A mod sees every request and reply on the way: it counts,
records or alters, and the two ends know nothing of it.
"""

from collections.abc import Callable
from typing import Protocol

from lightsplit.protocol import Reply, Request

Send = Callable[[Request], Reply]


class Mod(Protocol):
    """Something that stands between client and server."""

    def __call__(self, request: Request, call_next: Send) -> Reply:
        """Return the reply to ``request``, usually that of ``call_next``."""
        ...


def through(mod: Mod, send: Send) -> Send:
    """Return ``send`` with ``mod`` in front of it."""
    return lambda request: mod(request, send)
