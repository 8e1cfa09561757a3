"""How long each client has kept the server waiting.

The clock of a connection runs from the moment a reply is on its way until the client's
next message has come; reading the reply is part of that time. It does not run while the
server works on a message, or while the client waits for its turn.
"""

import time

from lightsplit.transports import Peer


class IdleTimeout:
    """One clock per connection.

    Args:
        seconds: how long a client may keep the server waiting.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadlines: dict[Peer, float] = {}  # its single operations are atomic

    def __len__(self) -> int:
        """Return how many clients the server waits for."""
        return len(self._deadlines)

    def start(
        self, peer: Peer, seconds: float | None = None, *, moves: int = 1
    ) -> None:
        """Start the clock: the server waits for the client's next message.

        Args:
            peer: that is to send it.
            seconds: how long it may take this time, if less than usual.
            moves: that the client makes before it sends something.
        """
        usual = self._seconds * moves
        allowed = usual if seconds is None else min(seconds, usual)
        self._deadlines[peer] = time.monotonic() + allowed

    def stop(self, peer: Peer) -> None:
        """Stop the clock: a message has come, or the connection has ended."""
        self._deadlines.pop(peer, None)

    def is_running(self, peer: Peer) -> bool:
        """Return whether the server waits for this client's next message."""
        return peer in self._deadlines

    def expired(self) -> list[Peer]:
        """Return the connections that have kept the server waiting for too long."""
        now = time.monotonic()
        clocks = list(self._deadlines.items())
        return [peer for peer, deadline in clocks if now > deadline]
