"""The other end of a connection, and the session that answers it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lightsplit.protocol import Message


@dataclass(frozen=True, eq=False)
class Peer:
    """A connected client.

    Attributes:
        name: the name in its certificate; None in plain text, where clients name
            themselves.
        cancel: ends the connection.
        is_alive: returns whether the connection is still open.
        when_gone: registers a function that the transport calls, in a thread of its
            own, when the connection ends.
        allow_sides: raises the limit of the client's messages to the length of a sealed
            side; until then the limit of the handshake applies.
        serial: the serial number of its certificate; None in plain text.
    """

    name: str | None
    cancel: Callable[[], object]
    is_alive: Callable[[], bool]
    when_gone: Callable[[Callable[[], None]], object] = lambda _call: None
    allow_sides: Callable[[], object] = lambda: None
    serial: int | None = None


class Session(Protocol):
    """Answers the messages of one connection, one at a time."""

    def handle(self, message: Message) -> Message | None:
        """Return the reply, perhaps after a long wait; None ends the session.

        A LightSplitError refuses the message and ends the session.
        """
        ...

    def replied(self) -> None:
        """Do the work that can wait until the reply is on its way."""
        ...

    def close(self) -> None:
        """Release the session; called once, however the connection ended."""
        ...


OpenSession = Callable[[Peer], Session]
