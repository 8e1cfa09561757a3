"""Long messages in parts: no frame is longer than PART_BYTES.

    pieces ── cut ──► part, part, part ── Joiner.add, one by one ──► the same bytes

The first part says how long the whole is. A joiner keeps the bytes that came, never
room for the bytes that were announced.
"""

from collections.abc import Callable, Iterable, Iterator

from lightsplit.errors import ProtocolError
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.frames.fields import field_head, parsed, split

Buffer = bytes | memoryview
PART = pb.Frame.PART_FIELD_NUMBER
PART_BYTES = 2 * 2**20  # gRPC's default limit is 4 MiB

_DATA = pb.Part.DATA_FIELD_NUMBER
_DATA_BYTES = PART_BYTES - 64  # leaves room for the head of a part


def cut(pieces: Iterable[Buffer], total: int) -> Iterator[bytes]:
    """Yield the frames of the parts of a message.

    Args:
        pieces: the message's bytes.
        total: how many bytes the pieces are together.
    """
    for index, views in enumerate(_grouped(pieces)):
        yield b"".join([_head(index, total), *views])


def parts_bytes(total: int) -> int:
    """Return how many bytes the parts of a message of ``total`` bytes are together."""
    count = -(-total // _DATA_BYTES)  # rounded up
    return total + sum(len(_head(index, total)) for index in range(count))


class Joiner:
    """Joins parts until they are a whole message.

    Args:
        check_first: called with the first part and the announced total; raises if
            such a message may not come.
    """

    def __init__(self, check_first: Callable[[memoryview, int], None]) -> None:
        self._check_first = check_first
        self.clear()

    def clear(self) -> None:
        """Forget all parts."""
        self._joined = bytearray()
        self._total = 0
        self._count = 0

    @property
    def is_empty(self) -> bool:
        """Return whether no message has begun."""
        return not self._count

    def check_empty(self) -> None:
        """Raise if the next part of a message was to come."""
        if not self.is_empty:
            raise ProtocolError(
                f"expected part {self._count} of a message, got another message"
            )

    def add(self, body: memoryview) -> memoryview | None:
        """Add a part; return the whole message once it is complete.

        Args:
            body: the fields of the part.
        """
        small, big = split(body, frozenset({_DATA}))
        part = parsed(pb.Part, small, "part")
        if len(big) != 1 or not big[0][1]:
            raise ProtocolError("a part has no data", code="malformed")
        ((_, data),) = big
        self._check(part.index, part.total, data)
        if self.is_empty:
            self._total = part.total
        self._joined += data
        self._count += 1
        if len(self._joined) < self._total:
            return None
        whole = memoryview(self._joined)
        self.clear()
        return whole

    def _check(self, index: int, total: int, data: memoryview) -> None:
        """Raise unless this part is the next one of a legal message."""
        if index != self._count:
            raise ProtocolError(f"expected part {self._count}, got part {index}")
        if bool(total) != self.is_empty:
            raise ProtocolError(
                f"expected a total length in part 0 alone, got {total} in part {index}"
            )
        if self.is_empty:
            self._check_first(data, total)
        end = len(self._joined) + len(data)
        announced = total or self._total
        if end > announced:
            raise ProtocolError(
                f"expected {announced} bytes in all parts, got {end}", code="too-large"
            )


def _grouped(pieces: Iterable[Buffer]) -> Iterator[list[memoryview]]:
    """Yield the pieces in groups of _DATA_BYTES, the last one shorter."""
    group: list[memoryview] = []
    room = _DATA_BYTES
    for piece in pieces:
        rest = memoryview(piece)
        while len(rest) >= room:
            yield [*group, rest[:room]]
            group, rest, room = [], rest[room:], _DATA_BYTES
        group.append(rest)
        room -= len(rest)
    if room < _DATA_BYTES:
        yield group


def _head(index: int, total: int) -> bytes:
    """Return everything in the frame of a part that precedes its data."""
    count = min(_DATA_BYTES, total - index * _DATA_BYTES)
    small = pb.Part(total=0 if index else total, index=index).SerializeToString()
    small += field_head(_DATA, count)
    return field_head(PART, len(small) + count) + small
