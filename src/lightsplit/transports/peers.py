"""The other end of a session, as far as the transport knows it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lightsplit.protocol import Message


@dataclass(frozen=True, eq=False)
class Peer:
    """A connected client.

    Attributes:
        name: its certificate's name; None in plain text, where it names itself.
        cancel: ends the session from outside.
        is_alive: says whether the connection still stands.
    """

    name: str | None
    cancel: Callable[[], object]
    is_alive: Callable[[], bool]


Session = Callable[[Peer, Iterator[Message]], Iterator[Message]]
