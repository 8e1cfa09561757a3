"""Who may hold a stream: names that take part, and only a few streams each.

A stream costs a thread. The certificate names the client before its first message, so a
name that does not take part is turned away at once, and no client can use up the room
of the others. Where a name has all its streams, one that has said nothing yet gives way
to a newer one: silent streams under a client's own name do not keep it out either. In
plain text a stream has no name here; then only the short time at the door and the total
number of streams limit it.
"""

import threading
from collections import defaultdict

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
    """Knows the streams of every name.

    Args:
        roster: of the clients that take part.
    """

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._lock = threading.Lock()  # the run's lock may be held for long
        # For each name its streams, oldest first, and whether each was heard.
        self._streams: defaultdict[str, dict[Peer, bool]] = defaultdict(dict)

    def enter(self, peer: Peer) -> None:
        """Let a new stream in, or refuse it."""
        if peer.name is None:
            return
        self._roster.check_may_come(peer.name)
        with self._lock:
            silent = self._make_room(peer.name)
            self._streams[peer.name][peer] = False
        if silent is not None:
            silent.cancel()

    def hear(self, peer: Peer) -> None:
        """Note a stream's first message; from now on it gives way to no other."""
        if peer.name is None:
            return
        with self._lock:
            if peer not in self._streams[peer.name]:
                raise _busy(peer.name)  # it has just given way
            self._streams[peer.name][peer] = True

    def leave(self, peer: Peer) -> None:
        """Forget a stream that has ended."""
        if peer.name is None:
            return
        with self._lock:
            self._streams[peer.name].pop(peer, None)
            if not self._streams[peer.name]:
                del self._streams[peer.name]

    def _make_room(self, name: str) -> Peer | None:
        """Return the stream that gives way, if one must; raise if none can."""
        held = self._streams[name]
        if len(held) < STREAMS_PER_NAME:
            return None
        silent = next((peer for peer, was_heard in held.items() if not was_heard), None)
        if silent is None:
            raise _busy(name)
        del held[silent]
        return silent


def _busy(name: str) -> TransportError:
    return TransportError(
        f"{name} has {STREAMS_PER_NAME} streams already; try again when one of them "
        "has ended",
        code="busy",
    )
