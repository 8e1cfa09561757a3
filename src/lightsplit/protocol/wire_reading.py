"""Frames to messages, trusting none of them.

    frame ─► length within the limit of its kind ─► [parts joined] ─► small fields
          ─► dtypes and shapes as expected ─► lengths ─► tensors ─► finite ─► message

What a peer can make us hold is what it sent, never what it announced, and at most the
limit of the kind; that is read from the first bytes, in parts too.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from torch import Tensor

from lightsplit.codecs.base import Code, TensorSpec
from lightsplit.errors import ProtocolError
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.wire_fields import parsed, read_varint, split, tag
from lightsplit.protocol.wire_limits import Claim, Expectation, Limits
from lightsplit.protocol.wire_schema import KINDS, PART, Kind, Message
from lightsplit.protocol.wire_tensors import received, tensor_of
from lightsplit.protocol.wire_writing import PART_BYTES

_Big = list[tuple[int, memoryview]]

_COUNTS = {"side": (0, 16), "labels": (0, 1)}  # of the tensors of one message
_PART_DATA = frozenset({pb.Part.DATA_FIELD_NUMBER})
_BY_FIRST_BYTE: dict[int, Kind | None] = {
    tag(PART)[0]: None,
    **{tag(number)[0]: kind for number, kind in KINDS.items()},
}


def from_frames(
    frames: Iterable[bytes],
    expectation: Expectation | None = None,
    limits: Limits = Limits(),  # noqa: B008  frozen
) -> Message:
    """Return the one message that ``frames`` are."""
    reader = Reader(expectation, limits)
    message: Message | None = None
    for frame in frames:
        if message is not None:
            raise ProtocolError("a frame after the end of the message")
        message = reader.feed(frame)
    if message is None:
        raise ProtocolError("the message is not complete", code="malformed")
    return message


class Reader:
    """Turns incoming frames into messages, joining parts.

    Give it ``expectation`` as soon as a contract is agreed on; until then, and for
    messages that bring no tensors, ``limits`` hold. After an error it holds nothing.
    """

    def __init__(
        self,
        expectation: Expectation | None = None,
        limits: Limits = Limits(),  # noqa: B008  frozen
    ) -> None:
        self.expectation = expectation
        self.limits = limits
        self._joined = bytearray()
        self._total = 0
        self._parts = 0

    def feed(self, frame: bytes) -> Message | None:
        """Return the message that ``frame`` completes, or None while parts are missing.

        Raises:
            ProtocolError: whatever is wrong; its code says what.
        """
        try:
            return self._read(frame)
        except ProtocolError:
            self._forget()
            raise

    def _read(self, frame: bytes) -> Message | None:
        if len(frame) > PART_BYTES:
            raise _too_large("frame", len(frame), PART_BYTES)
        view = memoryview(frame)
        kind, start, end = _opened(view)
        if kind is None:
            _check_end("part", end, len(frame))
            return self._join(*_part(view[start:]))
        if self._total:
            raise ProtocolError(f"expected part {self._parts} of a message")
        self._check_total(kind.name, end, len(frame))
        return self._message(kind, view[start:])

    def _join(self, index: int, total: int, data: memoryview) -> Message | None:
        if not self._total:
            self._begin(total, data)
        elif total:
            raise ProtocolError("a message begins inside another")
        if index != self._parts:
            raise ProtocolError(f"expected part {self._parts}, got part {index}")
        if len(self._joined) + len(data) > self._total:
            raise _too_large("parts", len(self._joined) + len(data), self._total)
        self._joined += data
        self._parts += 1
        return None if len(self._joined) < self._total else self._whole()

    def _begin(self, total: int, data: memoryview) -> None:
        """Check what a first part says of the whole before any of it is kept."""
        if not total:
            raise ProtocolError("the first part of a message is missing")
        kind, _, end = _opened(data)
        if kind is None:
            raise ProtocolError("a part inside a part", code="malformed")
        self._check_total(kind.name, end, total)
        self._total = total

    def _whole(self) -> Message:
        view = memoryview(self._joined)
        self._forget()
        kind, start, _ = _opened(view)
        assert kind is not None  # noqa: S101  as it began
        return self._message(kind, view[start:])

    def _forget(self) -> None:
        self._joined, self._total, self._parts = bytearray(), 0, 0

    def _check_total(self, name: str, end: int, total: int) -> None:
        _check_end(name, end, total)
        limit = None if self.expectation is None else self.expectation.limit_bytes(name)
        if limit is None:
            limit = self.limits.limit_bytes(name)
        if total > limit:
            raise _too_large(name, total, limit)

    def _message(self, kind: Kind, body: memoryview) -> Message:
        small, big = split(body, kind.big)
        known = _scalars(kind, parsed(kind.schema, small, kind.name))
        if kind.tensors:
            known |= self._tensors(kind, big, known)
        elif big:
            known["side"] = bytes(big[-1][1])
        message: Message = kind.message(**known)
        return message

    def _tensors(
        self, kind: Kind, big: _Big, scalars: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what a step's message holds, all of it checked before one is made."""
        found = [(kind.tensors[field], *received(body)) for field, body in big]
        _check_names(kind.number, tuple([name for name, _, _ in found]))
        if self.expectation is not None:
            self.expectation.check(kind.name, _claim(found, scalars))
        tensors = [
            (name, tensor_of(spec, data, f"{kind.name}.{name}"))
            for name, spec, data in found
        ]
        return _contents(kind, tensors)


def _opened(frame: memoryview) -> tuple[Kind | None, int, int]:
    """Return the kind in a frame (None: a part), where it starts and where it ends."""
    first = frame[0] if frame else 0
    if first not in _BY_FIRST_BYTE:
        raise ProtocolError(
            f"no message begins with byte {first}", code="unknown-message"
        )
    length, start = read_varint(frame, 1)
    return _BY_FIRST_BYTE[first], start, start + length


def _part(body: memoryview) -> tuple[int, int, memoryview]:
    """Return the number of a part, the total that it states, and its data."""
    small, big = split(body, _PART_DATA)
    part = parsed(pb.Part, small, "part")
    if len(big) != 1 or not big[0][1]:
        raise ProtocolError("a part without data", code="malformed")
    return part.index, part.total, big[0][1]


def _check_end(name: str, end: int, total: int) -> None:
    if end != total:
        raise ProtocolError(
            f"{name}: expected {end} bytes, got {total}", code="malformed"
        )


def _scalars(kind: Kind, small: Any) -> dict[str, Any]:
    known = {name: getattr(small, name) for name in kind.scalars}
    for name in kind.optional:
        if not small.HasField(name):
            known[name] = None
        elif not math.isfinite(known[name]):
            raise ProtocolError(
                f"{kind.name}.{name} is {known[name]}", code="not-finite"
            )
    return known


@lru_cache(maxsize=64)
def _check_names(number: int, names: tuple[str, ...]) -> None:
    """Raise unless each tensor is there once; labels may be absent, sides many."""
    kind = KINDS[number]
    for name in kind.tensors.values():
        fewest, most = _COUNTS.get(name, (1, 1))
        if not fewest <= names.count(name) <= most:
            raise ProtocolError(
                f"{kind.name}: {names.count(name)} tensors {name!r} where {fewest} to "
                f"{most} may come",
                code="malformed",
            )


def _claim(
    found: list[tuple[str, TensorSpec, memoryview]], scalars: dict[str, Any]
) -> Claim:
    specs = {name: spec for name, spec, _ in found}
    return Claim(
        specs.get("values") or specs["gradient"],
        tuple(spec for name, spec, _ in found if name == "side"),
        specs.get("labels"),
        scalars.get("is_training", True),
        scalars.get("loss") is not None,
    )


def _contents(kind: Kind, tensors: Sequence[tuple[str, Tensor]]) -> dict[str, Any]:
    """Return the fields of the dataclass that its tensors fill."""
    known: dict[str, Any] = dict(tensors)
    sides = tuple(tensor for name, tensor in tensors if name == "side")
    if "gradient" in known:
        return {**known, "side": sides}
    known.pop("side", None)
    known[kind.name] = Code(known.pop("values"), sides)
    return known


def _too_large(name: str, count: int, limit: int) -> ProtocolError:
    return ProtocolError(
        f"{name}: {count} bytes where at most {limit} may come", code="too-large"
    )
