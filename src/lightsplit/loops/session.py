"""The server's end of one connection of a client with its own loop."""

from lightsplit.deployment.handshake import check_hello, expect
from lightsplit.deployment.roster import Member
from lightsplit.errors import ProtocolError
from lightsplit.loops.book import Book
from lightsplit.loops.loop_server import LoopServer
from lightsplit.protocol import Message, Reply, Request
from lightsplit.protocol.control import Hello, Update, Welcome
from lightsplit.transports import Peer


class LoopSession:
    """Hello, then steps and updates in the order in which the client's loop asks.

    Args:
        loops: the server.
        peer: the connection.
    """

    def __init__(self, loops: LoopServer, peer: Peer) -> None:
        self._loops = loops
        self._peer = peer
        self._member: Member | None = None
        self._book: Book | None = None
        self._answered: tuple[Request, Reply] | None = None

    def handle(self, message: Message) -> Message | None:
        """Return the reply to a message, perhaps after other clients' updates."""
        if self._member is None or self._book is None:
            return self._greet(expect(Hello, message))
        if self._member.peer is not self._peer:
            raise ProtocolError(
                f"a newer connection under the name {self._member.name!r} took over",
                code="refused",
            )
        if isinstance(message, Update):
            return self._loops.answer(self._book, message, self._peer.is_alive)
        request = _step_of(self._member, message)
        reply = self._loops.answer(self._book, request, self._peer.is_alive)
        assert isinstance(reply, Reply)  # noqa: S101  the answer to a request
        self._answered = request, reply
        return reply

    def replied(self) -> None:
        """Update the weights while the reply is on its way, and count bytes."""
        if self._answered is not None and self._member is not None:
            self._member.meter.count(*self._answered)
            self._answered = None
        self._loops.settle()

    def close(self) -> None:
        """Leave; an update under way stays for a client that comes back soon."""
        self.replied()
        if self._member is not None and self._member.peer is self._peer:
            self._member.peer = None

    def _greet(self, hello: Hello) -> Welcome:
        check_hello(hello, self._peer, self._loops.contract)
        if hello.purpose != "loop":
            raise ProtocolError(
                "this server takes loops without turns, which 'lightsplit.connect' "
                f"opens; got a client that wants to {hello.purpose}",
                code="out-of-order",
            )
        self._member, self._book = self._loops.enter(hello.name)
        former, self._member.peer = self._member.peer, self._peer
        if former is not None:
            former.cancel()
        self._member.meter.add("setup", len(hello.contract.encode()))
        return Welcome(self._member.index, self._loops.run)


def _step_of(member: Member, message: Message) -> Request:
    if not isinstance(message, Request):
        raise ProtocolError(
            f"expected a step or an update, got {type(message).__name__}",
            code="out-of-order",
        )
    if message.client != member.index:
        raise ProtocolError(
            f"{member.name} is client {member.index}, not {message.client}",
            code="not-your-turn",
        )
    return message
