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
        when_gone: takes what is called, in a thread of the transport's, once it does
            not stand any more.
        allow_sides: lets its messages bring a sealed side from now on; before, none of
            them may be longer than what is said at the door.
    """

    name: str | None
    cancel: Callable[[], object]
    is_alive: Callable[[], bool]
    when_gone: Callable[[Callable[[], None]], object] = lambda _call: None
    allow_sides: Callable[[], object] = lambda: None


Session = Callable[[Peer, Iterator[Message]], Iterator[Message]]
