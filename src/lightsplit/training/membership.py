"""The clients of a networked run, by name and by index."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lightsplit.errors import ProtocolError
from lightsplit.transports import KINDS, ByteMeter, Peer


@dataclass
class Member:
    """A client that the run knows.

    Attributes:
        name: as in its certificate.
        index: position in the order of turns; its randomness derives from it.
        wake: notified when it is this client's turn, or the run is over.
        batches: per epoch, once it has said so.
        peer: its live connection.
        loss: the last one that it chose to report.
        meter: of its bytes.
    """

    name: str
    index: int
    wake: threading.Condition
    batches: int = 0
    peer: Peer | None = None
    loss: float | None = None
    meter: ByteMeter = field(default_factory=ByteMeter)


class Membership:
    """Who takes part: a fixed list of names, or whoever comes first."""

    def __init__(
        self, size: int, lock: threading.RLock, names: list[str] | None = None
    ) -> None:
        self._size = size
        self._lock = lock
        self._is_open = names is None
        self._members: list[Member] = []
        for name in names or ():
            self._add(name)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members)

    def __getitem__(self, index: int) -> Member:
        return self._members[index]

    @property
    def are_ready(self) -> bool:
        """Say whether every client has joined and said how many batches it has."""
        return len(self._members) == self._size and all(m.batches for m in self)

    def find(self, name: str) -> Member:
        """Return the client called ``name``, or turn it away."""
        for member in self:
            if member.name == name:
                return member
        if self._is_open and len(self._members) < self._size:
            return self._add(name)
        known = ", ".join(member.name for member in self)
        raise ProtocolError(
            f"{name!r} is not among the {self._size} clients: {known}",
            code="unknown-client",
        )

    def bytes_by_kind(self) -> dict[str, int]:
        """Return the bytes of all clients by kind, and their total."""
        counts = {kind: sum(m.meter.counts[kind] for m in self) for kind in KINDS}
        return {**counts, "total": sum(counts.values())}

    def to_list(self) -> list[dict[str, Any]]:
        """Return what a checkpoint keeps."""
        return [
            {"name": m.name, "batches": m.batches, "bytes": m.meter.by_kind()}
            for m in self
        ]

    def restore(self, saved: list[dict[str, Any]]) -> None:
        """Know the clients of a checkpoint again."""
        for entry in saved:
            member = self.find(entry["name"])
            member.batches = entry["batches"]
            member.meter.restore(entry["bytes"])

    def _add(self, name: str) -> Member:
        if any(member.name == name for member in self):
            raise ProtocolError(f"{name!r} is listed twice", code="unknown-client")
        wake = threading.Condition(self._lock)
        self._members.append(Member(name, len(self._members), wake))
        return self._members[-1]
