"""The owners of a round in one process: each runs until its next message.

    owner 0 ─► code ─┐                ┌─► output ─► owner 0 goes on ─► gradient ─┐
    owner 1 ─► code ─┼─► [all at once] ─► output ─► owner 1 goes on ─► gradient ─┼─► …
    owner 2 ─► code ─┘                └─► output ─► owner 2 goes on ─► gradient ─┘

A message is sent in the middle of a model's forward or backward pass, so each owner has
its own thread. Exactly one of them runs at a time, in the order of the owners' numbers:
nothing depends on timing, and random numbers come from the step's own seed as always.
If all owners hold one side, its contents are swapped whenever another owner runs
(``shared_side``).
"""

import queue
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from lightsplit.protocol import Reply, Request
from lightsplit.simulation.shared_side import Seat, SharedSide
from lightsplit.transports import Send

Work = Callable[[], Any]
Answer = Callable[[list[Request]], Mapping[int, Reply]]


class LeftError(Exception):
    """Ends the step of an owner that leaves the round."""


class _Ended(NamedTuple):
    """The result or the error of an owner's work."""

    result: Any = None
    error: BaseException | None = None


class Gathering:
    """Carries the messages of owners who work at the same time.

    Args:
        handle: answers a message outside a round.
    """

    def __init__(self, handle: Send) -> None:
        self._handle = handle
        self._here = threading.local()
        self._pool: ThreadPoolExecutor | None = None
        self._threads = 0

    def send(self, request: Request) -> Reply:
        """Return the reply; in a round, when all owners have sent their messages."""
        owner: _Owner | None = getattr(self._here, "owner", None)
        if owner is None or not request.is_training:
            return self._handle(request)
        return owner.wait(request)

    def run(
        self,
        works: Mapping[int, Work],
        answer: Answer,
        shared: SharedSide | None = None,
    ) -> dict[int, Any]:
        """Let every owner do its work; return the results of the owners that stayed.

        Args:
            works: of each owner.
            answer: gets one message from each owner that is still there, and returns
                replies; an owner without a reply leaves.
            shared: the side that all of them hold, if they do.
        """
        owners = {index: _Owner(work, shared) for index, work in sorted(works.items())}
        pool = self._workers(len(owners))
        for owner in owners.values():
            pool.submit(self._work, owner)
        found: dict[int, Any] = {}
        waiting = {index: owner.go_on(None) for index, owner in owners.items()}
        try:
            while waiting:
                self._collect(waiting, found)
                requests = [one for one in waiting.values() if isinstance(one, Request)]
                replies = answer(requests) if requests else {}
                waiting = {
                    index: owners[index].go_on(replies.get(index)) for index in waiting
                }
        finally:
            for index, said in waiting.items():
                owners[index].send_away(said)
        return found

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    @staticmethod
    def _collect(waiting: dict[int, Any], found: dict[int, Any]) -> None:
        """Move finished owners from ``waiting`` to ``found``; raise their errors."""
        for index, one in list(waiting.items()):
            if isinstance(one, _Ended):
                del waiting[index]
                if one.error is None:
                    found[index] = one.result
                elif not isinstance(one.error, LeftError):
                    raise one.error

    def _workers(self, count: int) -> ThreadPoolExecutor:
        """Return as many threads as there are owners; they are kept between rounds."""
        if self._pool is None or self._threads < count:
            self.close()
            self._pool = ThreadPoolExecutor(count, "owner")
            self._threads = count
        return self._pool

    def _work(self, owner: "_Owner") -> None:
        self._here.owner = owner
        try:
            owner.run()
        finally:
            self._here.owner = None


class _Owner:
    """The work of one owner, which stops at every message.

    Args:
        work: of the owner.
        shared: the side that it holds with others.
    """

    def __init__(self, work: Work, shared: SharedSide | None) -> None:
        self._work = work
        self._shared = shared
        self._seat = Seat()
        self._replies: queue.SimpleQueue[Reply | None] = queue.SimpleQueue()
        self._said: queue.SimpleQueue[Request | _Ended] = queue.SimpleQueue()

    def go_on(self, reply: Reply | None) -> Request | _Ended:
        """Let the owner work until its next message, or its end."""
        if self._shared is not None:
            self._shared.enter(self._seat)
        self._replies.put(reply)
        said = self._said.get()
        if self._shared is not None:
            self._shared.leave(self._seat)
        return said

    def send_away(self, said: Request | _Ended) -> None:
        """Let an owner end whose last message was ``said``."""
        while not isinstance(said, _Ended):
            said = self.go_on(None)

    def run(self) -> None:
        """Do the work, in the owner's own thread."""
        self._replies.get()
        try:
            self._said.put(_Ended(self._work()))
        except BaseException as error:  # noqa: BLE001  raised where the round runs
            self._said.put(_Ended(error=error))

    def wait(self, request: Request) -> Reply:
        """Say ``request`` and wait for its reply, in the owner's own thread."""
        self._said.put(request)
        reply = self._replies.get()
        if reply is None:
            raise LeftError
        return reply
