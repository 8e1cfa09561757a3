"""Frames to messages, trusting none of them.

    frame ─► length within the limit of its kind ─► [parts joined] ─► small fields
          ─► dtypes and shapes as expected ─► lengths ─► tensors ─► finite ─► message

What a peer can make us hold is what it sent, never what it announced, and at most the
limit of the kind; that is read from the first bytes, in parts too.
"""

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from torch import Tensor

from lightsplit.codecs.base import Code
from lightsplit.errors import ProtocolError
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.wire_fields import parsed, read_varint, split, tag
from lightsplit.protocol.wire_limits import Claim, Expectation, Limits
from lightsplit.protocol.wire_schema import KINDS, PART, Kind, Message
from lightsplit.protocol.wire_templates import Familiar, Found, make_familiar
from lightsplit.protocol.wire_tensors import received, tensor_of
from lightsplit.protocol.wire_writing import PART_BYTES, remember_length, tensors_of

_Big = list[tuple[int, memoryview]]

_MOST_FAMILIAR = 64  # sorts of frames
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
        self._length = 0  # of the frames of the message at hand
        self._familiar: dict[tuple[bytes, int], Familiar] = {}

    def feed(self, frame: bytes) -> Message | None:
        """Return the message that ``frame`` completes, or None while parts are missing.

        Raises:
            ProtocolError: whatever is wrong; its code says what.
        """
        try:
            message = self._read_familiar(frame) or self._read(frame)
        except ProtocolError:
            self._forget()
            self._length = 0
            raise
        self._length += len(frame)
        if message is not None:
            remember_length(message, self._length)
            self._length = 0
        return message

    @property
    def _rules(self) -> tuple[object, ...]:
        return self.expectation, self.limits

    def _read_familiar(self, frame: bytes) -> Message | None:
        """Return the message of a frame like an earlier one; else None."""
        key = frame[:1], len(frame)
        known = self._familiar.get(key)
        if known is None or self._total or known.rules != self._rules:
            return None
        found = known.read(frame)
        return None if found is None else _filled(known.kind, *found)

    def _make_familiar(self, kind: Kind, message: Message, frame: bytes) -> None:
        if len(self._familiar) >= _MOST_FAMILIAR:
            self._familiar.clear()
        self._familiar[frame[:1], len(frame)] = make_familiar(
            kind, message, tensors_of(message), self._rules
        )

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
        message = self._message(kind, view[start:])
        if kind.tensors:
            self._make_familiar(kind, message, frame)
        return message

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
        scalars = _scalars(kind, parsed(kind.schema, small, kind.name))
        if kind.tensors:
            return _filled(kind, scalars, self._checked(kind, big, scalars))
        if big:
            scalars["side"] = bytes(big[-1][1])
        message: Message = kind.message(**scalars)
        return message

    def _checked(self, kind: Kind, big: _Big, scalars: dict[str, Any]) -> Found:
        """Return the tensors of a step's message, still as bytes, if they are legal."""
        found = [(kind.tensors[field], *received(body)) for field, body in big]
        _check_names(kind.number, tuple([name for name, _, _ in found]))
        if self.expectation is not None:
            self.expectation.check(kind.name, _claim(found, scalars))
        return found


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


def _claim(found: Found, scalars: dict[str, Any]) -> Claim:
    specs = {name: spec for name, spec, _ in found}
    return Claim(
        specs.get("values") or specs["gradient"],
        tuple(spec for name, spec, _ in found if name == "side"),
        specs.get("labels"),
        scalars.get("is_training", True),
        scalars.get("loss") is not None,
    )


def _filled(kind: Kind, scalars: dict[str, Any], found: Found) -> Message:
    """Return a step's message, its tensors made."""
    known: dict[str, Any] = {}
    sides: tuple[Tensor, ...] = ()
    for name, spec, data in found:
        tensor = tensor_of(spec, data, kind.name, name)
        if name == "side":
            sides += (tensor,)
        else:
            known[name] = tensor
    if "gradient" in known:
        known["side"] = sides
    else:
        known[kind.name] = Code(known.pop("values"), sides)
    message: Message = kind.message(**scalars, **known)
    return message


def _too_large(name: str, count: int, limit: int) -> ProtocolError:
    return ProtocolError(
        f"{name}: {count} bytes where at most {limit} may come", code="too-large"
    )
