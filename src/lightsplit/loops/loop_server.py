"""The server of clients that drive their own loops.

    Update("start")               where do both ends stand?
    codes and output gradients    of one client at a time; the others wait
    Update("apply")               a client's optimizer has stepped; the server's follows
    Update("keep")                the client saves its state, so does the server

There are no turns. An update belongs to one client, from its first code to ``apply``.
Clients queue to begin an update, so nobody is passed over, and only one update is open
at a time, so no other update changes the weights in between. Each update of each client
is applied exactly once:

* A repeated message gets the same reply as before.
* If others wait too long for an update, whatever its client does meanwhile, it is
  dropped. Its client is asked to send the messages again.
* If a client goes back to its own checkpoint, so does the server, provided it has a
  save of that moment and no other client has trained since. Otherwise the server
  answers the client's updates again but does not apply them again.
"""

import secrets
import threading
import time
from collections.abc import Callable

from lightsplit.deployment.roster import Member, Roster
from lightsplit.deployment.turn_steps import computed
from lightsplit.errors import LightSplitError, ProtocolError
from lightsplit.loops.book import Book
from lightsplit.loops.saves import Saves
from lightsplit.protocol import CodeMessage, Contract, Reply, Request
from lightsplit.protocol.control import Update, Updated
from lightsplit.runtime.accumulating import AccumulatingServer

SAVE_EVERY = 100
_LONGEST_NAP_SECONDS = 1.0


class LoopServer:
    """Answers the messages of all clients; every method may be called by any thread.

    Args:
        server: adds up gradients.
        contract: of the run.
        saves: where the weights are saved; None keeps them in memory alone.
        names: the clients that may come; None admits the first that come.
        save_every: updates between saves.
        step_timeout_seconds: the longest that others wait for one update.

    Attributes:
        run: the run's random name.
        members: the clients.
    """

    def __init__(
        self,
        server: AccumulatingServer,
        contract: Contract,
        *,
        saves: Saves | None = None,
        names: list[str] | None = None,
        save_every: int = SAVE_EVERY,
        step_timeout_seconds: float = 60.0,
    ) -> None:
        self.server = server
        self.contract = contract
        self.lock = threading.RLock()
        self.run = secrets.token_hex(16)
        self.members = Roster(contract.clients, self.lock, names)
        self._books: dict[str, Book] = {}
        self._free = threading.Condition(self.lock)
        self._owner: Book | None = None
        self._opened = 0.0  # when the owner's update began
        self._queue: list[Book] = []
        self._saves = saves
        self._save_every = save_every
        self._timeout = step_timeout_seconds
        self._resume()

    def enter(self, name: str) -> tuple[Member, Book]:
        """Admit a client, or refuse it."""
        with self.lock:
            member = self.members.admit(name)
            return member, self._book(member)

    def applied(self) -> dict[str, int]:
        """Return how many updates of each client the weights have."""
        with self.lock:
            return {name: book.applied for name, book in self._books.items()}

    def answer(
        self, book: Book, message: Request | Update, is_alive: Callable[[], bool]
    ) -> Reply | Updated:
        """Return the reply to a message, perhaps after other clients' updates.

        Args:
            book: of the client.
            message: that came.
            is_alive: returns whether the client still waits for the reply.
        """
        with self.lock:
            if isinstance(message, Update):
                return self._update(book, message)
            if isinstance(message, CodeMessage) and not message.is_training:
                return computed(message, self.server.answer)
            return self._step(book, message, is_alive)

    def settle(self) -> None:
        """Do the work that was put off until a reply was on its way."""
        with self.lock:
            self.server.settle()

    def save(self) -> None:
        """Save the weights with all updates that were applied."""
        with self.lock:
            if self._saves is not None and any(
                book.saved != book.applied for book in self._books.values()
            ):
                self._saves.write(self.run, self.applied(), self.server.state())
            for book in self._books.values():
                book.saved = book.applied

    def _resume(self) -> None:
        """Go on from the newest save; the first time, save the first weights."""
        if self._saves is None:
            return
        newest = self._saves.newest()
        if newest is None:  # a server that is killed at once comes back as the same
            self._saves.write(self.run, {}, self.server.state())
            return
        self.run = newest.run
        self.server.load(newest.state())
        for name, count in newest.applied.items():
            book = self._book(self.members.admit(name))
            book.applied = book.saved = book.made = count

    def _book(self, member: Member) -> Book:
        return self._books.setdefault(member.name, Book(member.name, member.index))

    def _step(
        self, book: Book, message: Request, is_alive: Callable[[], bool]
    ) -> Reply:
        key = message.kind, message.step
        if book.last is not None and book.last[0] == key:
            return book.last[1]
        self._claim(book, is_alive)
        try:
            reply = computed(message, self.server.answer)
        except BaseException:  # whatever failed, nothing of the update stays
            self._forget(book)
            raise
        book.last = key, reply
        book.messages += 1
        return reply

    def _claim(self, book: Book, is_alive: Callable[[], bool]) -> None:
        """Start an update once this client is first in the queue."""
        if self._owner is not book:
            self._queue.append(book)
            try:
                self._wait_for_turn(book, is_alive)
            finally:
                self._queue.remove(book)
                self._free.notify_all()
        if book.is_undone:
            raise ProtocolError(
                "others waited too long for this update, so it was forgotten; send its "
                "messages again",
                code="stale-turn",
            )
        if self._owner is not book:
            self._owner, self._opened = book, time.monotonic()

    def _wait_for_turn(self, book: Book, is_alive: Callable[[], bool]) -> None:
        """Wait until this client is first in the queue and no update is open."""
        began = time.monotonic()
        while self._owner is not None or self._queue[0] is not book:
            waited = 0.0
            if self._owner is not None:
                waited = time.monotonic() - max(began, self._opened)
                if waited > self._timeout:
                    self._forget(self._owner)
                    continue
            self._free.wait(min(self._timeout - waited, _LONGEST_NAP_SECONDS) + 0.01)
            if not is_alive():
                raise ProtocolError("the connection was cut off", code="stale-turn")

    def _forget(self, book: Book) -> None:
        """Forget the update under way; its client has to send it again."""
        book.close()
        book.is_undone = True
        if self._owner is book:
            self.server.discard()
            self._release()

    def _release(self) -> None:
        self._owner = None
        self._free.notify_all()

    def _update(self, book: Book, update: Update) -> Updated:
        match update.action:
            case "apply":
                self._apply(book, update)
            case "keep":
                self.save()
            case "start":
                self._start(book, update.number)
            case "again":
                book.is_undone = False
                book.made = min(book.made, update.number)
            case other:
                raise ProtocolError(
                    f"expected start, again, apply or keep, got {other!r}",
                    code="unknown-message",
                )
        return book.updated

    def _apply(self, book: Book, update: Update) -> None:
        if update.number == book.made:  # it comes again
            return
        if update.number != book.made + 1:
            raise ProtocolError(
                f"expected update {book.made + 1} of {book.name}, got {update.number}"
            )
        if book.is_undone:
            raise ProtocolError("the update was forgotten", code="stale-turn")
        if self._owner is book:
            self._end(book, update)
        book.made = update.number
        book.applied = max(book.applied, book.made)
        book.close()
        if self._saves is None or sum(self.applied().values()) % self._save_every == 0:
            self.save()

    def _end(self, book: Book, update: Update) -> None:
        """Apply the update under way, unless it was applied before."""
        try:
            if update.number > book.applied:
                self.server.apply(update.rate, update.base_rate)
            else:
                self.server.discard()
        except LightSplitError:
            self._forget(book)
            raise
        self._release()

    def _start(self, book: Book, made: int) -> None:
        """Stand where the client stands, as far as no other client loses by it."""
        if self._owner is book:
            self._forget(book)
        book.close()
        if made > book.applied:
            raise ProtocolError(
                f"{book.name} stands at update {made} and this server at "
                f"{book.applied}: start it with the folder of its last save",
                code="refused",
            )
        if made == 0 and book.applied:
            raise ProtocolError(
                f"this server stands at update {book.applied} of {book.name}, whose "
                "model has made none: load your checkpoint before the first batch, or "
                "start the server with a new folder",
                code="refused",
            )
        book.made = made
        if made < book.applied:
            self._go_back(book)

    def _go_back(self, book: Book) -> None:
        """Return to the save of the client's checkpoint, if nobody else loses by it."""
        if self._saves is None or self._owner is not None:
            return
        save = self._saves.of({**self.applied(), book.name: book.made})
        if save is not None:
            self.server.load(self._saves.go_back_to(save))
            book.applied = book.saved = book.made
