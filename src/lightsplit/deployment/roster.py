"""The clients of a networked run, by name and by index."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lightsplit.errors import ConfigError, ProtocolError, RunError
from lightsplit.protocol import EncryptedCode, Request
from lightsplit.transports import KINDS, ByteMeter, Peer
from lightsplit.transports.certificates import check_client_name


@dataclass
class Member:
    """One client of the run.

    Attributes:
        name: as in its certificate.
        index: position in the order of turns; the client's randomness derives from it.
        wake: notified when the client's turn begins or the run ends.
        batches: per epoch; 0 until the client has said how many.
        peer: its live connection, if it has one.
        loss: the last loss that the client chose to report.
        waited_seconds: how long the client has waited for the others in its rounds.
        is_told: whether the client has acknowledged the end of the run.
        meter: counts its bytes.
    """

    name: str
    index: int
    wake: threading.Condition
    batches: int = 0
    peer: Peer | None = None
    loss: float | None = None
    waited_seconds: float = 0.0
    is_told: bool = False
    meter: ByteMeter = field(default_factory=ByteMeter)

    def check_sender(self, request: Request | EncryptedCode) -> None:
        """Raise unless a message is this client's own."""
        if request.client != self.index:
            raise ProtocolError(
                f"{self.name} is client {self.index}, not {request.client}",
                code="not-your-turn",
            )


class Roster:
    """The clients of a run: a fixed list of names, or the first that come.

    Args:
        size: how many clients take part.
        lock: that guards the run; a client that waits sleeps on it.
        names: of the clients, in the order of their turns; None admits the first
            ``size`` clients under any names.
    """

    def __init__(
        self, size: int, lock: threading.RLock, names: list[str] | None = None
    ) -> None:
        self._size = size
        self._lock = lock
        self._is_open = names is None
        self._members: list[Member] = []
        if names is not None and (len(names) != size or len(set(names)) != size):
            raise ConfigError(
                f"expected {size} different names of clients, got {', '.join(names)}"
            )
        for name in names or ():
            self._add(check_client_name(name))

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._members))

    def __getitem__(self, index: int) -> Member:
        return self._members[index]

    @property
    def are_ready(self) -> bool:
        """Return whether every client has joined and said how many batches it has."""
        return len(self._members) == self._size and all(m.batches for m in self)

    def admit(self, name: str) -> Member:
        """Return the client called ``name``; add it if a place is free."""
        is_new = all(member.name != name for member in self)
        if is_new and self._is_open and len(self._members) < self._size:
            try:
                return self._add(check_client_name(name))
            except ConfigError as error:
                raise ProtocolError(str(error), code="unknown-client") from error
        return self.find(name)

    def check_may_come(self, name: str) -> None:
        """Refuse a name that does not take part and cannot join any more."""
        if not self._is_open or len(self._members) == self._size:
            self.find(name)

    def find(self, name: str) -> Member:
        """Return the client called ``name``, or refuse it."""
        for member in self:
            if member.name == name:
                return member
        known = ", ".join(member.name for member in self) or "none so far"
        raise ProtocolError(
            f"{name!r} is not among the {self._size} clients: {known}",
            code="unknown-client",
        )

    def bytes_by_kind(self) -> dict[str, int]:
        """Return the bytes of all clients by kind, and their total."""
        counts = {kind: sum(m.meter.counts[kind] for m in self) for kind in KINDS}
        return {**counts, "total": sum(counts.values())}

    def to_list(self) -> list[dict[str, Any]]:
        """Return the clients as a checkpoint keeps them."""
        return [
            {"name": m.name, "batches": m.batches, "bytes": m.meter.by_kind()}
            for m in self
        ]

    def restore(self, saved: list[dict[str, Any]]) -> None:
        """Restore the clients of a checkpoint, each at its position."""
        if self._is_open:
            self._members.clear()
            for entry in saved:
                self._add(entry["name"])
        before = [entry["name"] for entry in saved]
        now = [member.name for member in self]
        if before != now:
            raise RunError(
                f"expected the clients that began the run, {', '.join(before)}, in "
                f"this order; got {', '.join(now)}"
            )
        for member, entry in zip(self, saved, strict=True):
            member.batches = entry["batches"]
            member.meter.restore(entry["bytes"])

    def _add(self, name: str) -> Member:
        wake = threading.Condition(self._lock)
        self._members.append(Member(name, len(self._members), wake))
        return self._members[-1]
