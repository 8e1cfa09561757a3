"""What a server remembers of one client whose loop is its own."""

from dataclasses import dataclass

from lightsplit.protocol import Reply
from lightsplit.protocol.control import Updated

Key = tuple[str, int]  # kind and step of a message


@dataclass
class Book:
    """One client's account.

    Attributes:
        name: of the client.
        index: of the client; its randomness at the server derives from it.
        applied: updates that the server's weights have.
        saved: those of them that a restart cannot lose.
        made: updates that were answered to the client as it stands now; fewer than
            ``applied`` after it went back to its own checkpoint while others went on.
        messages: of the update under way that were answered.
        last: the last message of a step and its reply, for a client that asks again.
        is_undone: whether the update under way was forgotten; the client must send its
            messages again.
    """

    name: str
    index: int
    applied: int = 0
    saved: int = 0
    made: int = 0
    messages: int = 0
    last: tuple[Key, Reply] | None = None
    is_undone: bool = False

    @property
    def updated(self) -> Updated:
        """Where the server stands with this client."""
        return Updated(self.made, min(self.saved, self.made), self.messages)

    def close(self) -> None:
        """End the update under way."""
        self.messages, self.last, self.is_undone = 0, None, False
