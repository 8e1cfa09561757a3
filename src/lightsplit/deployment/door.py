"""Who may hold a stream: names that take part, and only a few streams each.

A stream costs a thread. The certificate names the client before its first message, so a
name that does not take part is turned away at once, and no client can use up the room
of the others. In plain text a stream has no name here; then only the short time at the
door and the total number of streams limit it.
"""

import threading
from collections import Counter

from lightsplit.deployment.roster import Roster
from lightsplit.errors import TransportError
from lightsplit.transports import Peer

STREAMS_PER_NAME = 4  # one that trains, and predictions beside it
SPARE_STREAMS = 16  # for streams that are turned away or have just ended
SECONDS_AT_THE_DOOR = 10.0


def most_streams(clients: int) -> int:
    """Return how many streams a server of so many clients needs at most."""
    return STREAMS_PER_NAME * clients + SPARE_STREAMS


class Door:
    """Counts the streams of every name.

    Args:
        roster: of the clients that take part.
    """

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._lock = threading.Lock()  # the run's lock may be held for long
        self._streams: Counter[str] = Counter()

    def enter(self, peer: Peer) -> None:
        """Let a new stream in, or refuse it."""
        if peer.name is None:
            return
        self._roster.check_may_come(peer.name)
        with self._lock:
            if self._streams[peer.name] >= STREAMS_PER_NAME:
                raise TransportError(
                    f"{peer.name} has {STREAMS_PER_NAME} streams already; try again "
                    "when one of them has ended",
                    code="busy",
                )
            self._streams[peer.name] += 1

    def leave(self, peer: Peer) -> None:
        """Count a stream that has ended."""
        if peer.name is None:
            return
        with self._lock:
            self._streams[peer.name] -= 1
            if not self._streams[peer.name]:
                del self._streams[peer.name]
