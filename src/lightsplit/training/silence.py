"""How long each connection has kept the server waiting.

It is the client's move from the moment an answer is on its way until its next message
has come; reading the answer is part of the move. A client that waits for its turn keeps
nobody waiting, and neither does one whose message is being worked on.
"""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing

from lightsplit.protocol import Message
from lightsplit.transports import Peer

Talk = Callable[[Peer, Iterator[Message]], Generator[Message, None, None]]


class Silence:
    """Since when it has been whose move."""

    def __init__(self) -> None:
        self._since: dict[Peer, float] = {}  # single operations on it are atomic

    def timed(
        self, talk: Talk, peer: Peer, requests: Iterator[Message]
    ) -> Iterator[Message]:
        """Yield what ``talk`` answers, and note whose move it is."""
        self._since[peer] = time.monotonic()
        try:
            with closing(talk(peer, self._heard(peer, requests))) as answers:
                for answer in answers:
                    self._since[peer] = time.monotonic()
                    yield answer
        finally:
            self._since.pop(peer, None)

    def is_waited_for(self, peer: Peer) -> bool:
        """Say whether it is this client's move."""
        return peer in self._since

    def longer_than(self, seconds: float) -> list[Peer]:
        """Return the connections that have been silent for so long."""
        now = time.monotonic()
        every = list(self._since.items())
        return [peer for peer, since in every if now - since > seconds]

    def _heard(self, peer: Peer, requests: Iterator[Message]) -> Iterator[Message]:
        for message in requests:
            self._since.pop(peer, None)
            yield message
