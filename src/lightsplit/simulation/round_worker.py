"""The owners of a round in a worker process, up to their next messages.

    main process ── Order ─► worker: sides and places of its owners
                 ◄─ Said ───         their messages, when all of them have come so far
                 ── replies ─►
                 ◄─ Ended ──         their reports, and what became of their sides

A worker keeps nothing between rounds. It has as many clients as it ever had owners in
one round, and each client may be a different owner in every round. So a run can
continue with any number of workers.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

from torch import Tensor

from lightsplit.protocol import Reply, Request, Share, Total
from lightsplit.protocol.frames import Limits, from_frames, to_frames
from lightsplit.results import tensors
from lightsplit.runtime import BatchSource, Client, Pace, TurnReport, masked_sum
from lightsplit.runtime.side import Side
from lightsplit.simulation.gathering import Gathering
from lightsplit.simulation.shared_side import SharedSide
from lightsplit.transports import ByteMeter

Frames = list[bytes]
_LIMITS = Limits(step_bytes=2**62)  # of the run's own processes


class Order(NamedTuple):
    """A worker's part of a round.

    Attributes:
        number: of the round.
        paces: the position of each owner's step in the run.
        sides: of each owner, if sides are private.
        shared: the weights of the side that all owners hold, if they do.
    """

    number: int
    paces: Mapping[int, Pace]
    sides: Mapping[int, bytes]
    shared: bytes = b""


class Said(NamedTuple):
    """The next message of each owner that is still there; shares come as their sum."""

    messages: list[Frames]


class Ended(NamedTuple):
    """The end of a worker's part of a round.

    Attributes:
        reports: of the owners who stayed.
        sides: of the same owners, if sides are private.
        buffers: the statistics of the common side after the first owner's batch; empty
            if no owner got the round's sum.
        counts: bytes by kind.
    """

    reports: Mapping[int, TurnReport]
    sides: Mapping[int, bytes]
    buffers: bytes
    counts: Mapping[str, int]


class Line(Protocol):
    """One end of a pipe."""

    def send(self, what: object, /) -> None:
        """Send anything that can be pickled."""

    def recv(self) -> object:
        """Wait for the next object from the other end."""


class CopiedSide(SharedSide):
    """A copy of the side that all owners hold; the main process makes the update."""

    def begin_round(self, number: int) -> None:
        """Begin the round as with the side itself."""
        super().begin_round(number)
        self.made: list[Tensor] = []

    def apply(self, side: Side, total: Total) -> bool:  # noqa: ARG002
        """Keep the statistics of the first owner that gets the round's sum."""
        self.made = self.made or [buffer.clone() for buffer in side.buffers]
        return False


class RoundWorker:
    """Computes the halves of some owners of a round.

    Args:
        line: to the main process.
        gathering: through which the clients send.
        meter: counts the bytes of what they send.
        make_client: returns a client that can be any owner.
        batches: of an owner.
        shared: the copy of the side that all clients hold, if they do.
    """

    def __init__(
        self,
        line: Line,
        *,
        gathering: Gathering,
        meter: ByteMeter,
        make_client: Callable[[], Client],
        batches: Callable[[int], BatchSource],
        shared: CopiedSide | None,
    ) -> None:
        self._line = line
        self._gathering = gathering
        self._meter = meter
        self._make_client = make_client
        self._batches = batches
        self._shared = shared
        self._clients: list[Client] = []

    def serve(self) -> None:
        """Take orders until there are no more."""
        while isinstance(order := self._line.recv(), Order):
            self._line.send(self._take(order))

    def _take(self, order: Order) -> Ended:
        self._meter.counts.clear()
        clients = self._seated(order)
        if self._shared is not None:
            clients[0].side.load(tensors.from_bytes(order.shared))
            self._shared.begin_round(order.number)
        reports = self._gathering.run(
            {
                one.index: partial(one.run_turn, self._batches(one.index), 1)
                for one in clients
            },
            self._answer,
            self._shared,
        )
        sides = {
            one.index: tensors.to_bytes(one.side.state())
            for one in clients
            if one.index in order.sides and one.index in reports
        }
        return Ended(reports, sides, self._made(), dict(self._meter.counts))

    def _seated(self, order: Order) -> list[Client]:
        """Return a client for each owner, set to the owner's state."""
        while len(self._clients) < len(order.paces):
            self._clients.append(self._make_client())
        seated = self._clients[: len(order.paces)]
        for client, (index, pace) in zip(seated, order.paces.items(), strict=True):
            client.index, client.steps, client.pace = index, pace.first_step, pace
            client.averaging = self._shared
            if index in order.sides:
                client.side.load(tensors.from_bytes(order.sides[index]))
        return seated

    def _answer(self, requests: list[Request]) -> dict[int, Reply]:
        """Return the replies of the main process, which gets one sum of all shares.

        Sums of integers may be computed in parts.
        """
        shares = [one for one in requests if isinstance(one, Share)]
        if not shares:
            return {one.client: one for one in self._asked(requests)}
        numbers, nonces = masked_sum.added(shares)
        whole = Share(shares[0].client, shares[0].step, numbers, nonces)
        (total,) = self._asked([whole])
        return {
            one.client: replace(total, client=one.client, step=one.step)
            for one in shares
        }

    def _asked(self, requests: list[Request]) -> list[Reply]:
        self._line.send(Said([to_frames(one) for one in requests]))
        return read_messages(self._line.recv())

    def _made(self) -> bytes:
        made = [] if self._shared is None else self._shared.made
        return buffers_to_bytes(made) if made else b""


def read_messages(messages: object) -> list[Reply]:
    """Return the messages that another process of the run has sent."""
    assert isinstance(messages, list)  # noqa: S101  both ends are ours
    return [from_frames(frames, limits=_LIMITS) for frames in messages]  # type: ignore[misc]


def buffers_to_bytes(buffers: list[Tensor]) -> bytes:
    """Return the statistics of a side as bytes."""
    return tensors.to_bytes({str(place): one for place, one in enumerate(buffers)})


def buffers_from_bytes(blob: bytes) -> list[Tensor]:
    """Return the statistics that ``buffers_to_bytes`` wrote."""
    found = tensors.from_bytes(blob)
    return [found[str(place)] for place in range(len(found))]
