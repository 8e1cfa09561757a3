"""Frames to messages, trusting none of them.

    frame ─► its length, against the limit of its kind ─► [parts joined]
          ─► small fields ─► dtypes and shapes, as expected
          ─► lengths ─► tensors ─► numbers are finite ─► message

A peer can make us hold the bytes that it sent, never as many as it announced, and at
most the limit of the message's kind. The kind is known from the first byte, and from
the first byte of the first part.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from lightsplit.codecs.base import Code, TensorSpec
from lightsplit.errors import ProtocolError
from lightsplit.protocol.frames.fields import field_head, parsed, read_varint, split
from lightsplit.protocol.frames.limits import (
    CIPHER_KINDS,
    Claim,
    Expectation,
    Limits,
)
from lightsplit.protocol.frames.parts import PART, PART_BYTES, Joiner
from lightsplit.protocol.frames.schema import KINDS, Kind, Message
from lightsplit.protocol.frames.tensors import make_tensor, read_tensor

_COUNTS = {
    "side": (0, 16),
    "labels": (0, 1),
    "companions": (0, 8),
}  # fewest and most; others come once
_NUMBERS = {field_head(number, 0)[:-1]: number for number in (*KINDS, PART)}
_TENSORS = ("gradient", "values", "numbers")  # that a message has one of


def from_frames(
    frames: Iterable[bytes],
    expectation: Expectation | None = None,
    limits: Limits | None = None,
) -> Message:
    """Return the one message that ``frames`` make up."""
    reader = Reader(expectation, limits)
    message: Message | None = None
    for frame in frames:
        if message is not None:
            raise ProtocolError("a frame follows after the end of the message")
        message = reader.feed(frame)
    if message is None:
        raise ProtocolError("the message is not complete", code="malformed")
    return message


class Reader:
    """Turns incoming frames into messages and joins parts.

    Set ``expectation`` once a contract is agreed on. Until then, and for messages
    without tensors, ``limits`` apply. After an error the reader holds nothing.
    """

    def __init__(
        self,
        expectation: Expectation | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.expectation = expectation
        agreed = Limits() if expectation is None else expectation.limits
        self.limits = limits or agreed
        self._parts = Joiner(self._check_first)

    def feed(self, frame: bytes) -> Message | None:
        """Return the message that ``frame`` completes, or None while parts are missing.

        Raises:
            ProtocolError: the frame is not legal; the error's code says why.
        """
        try:
            return self._read(memoryview(frame))
        except ProtocolError:
            self._parts.clear()
            raise

    def _read(self, frame: memoryview) -> Message | None:
        if len(frame) > PART_BYTES:
            raise _too_large("frame", len(frame), PART_BYTES)
        number, start, end = _opened(frame)
        if number == PART:
            _check_end("part", end, len(frame))
            whole = self._parts.add(frame[start:])
            return None if whole is None else self._joined(whole)
        self._parts.check_empty()
        self._check_total(KINDS[number], end, len(frame))
        return self._message(KINDS[number], frame[start:])

    def _joined(self, whole: memoryview) -> Message:
        """Return the message that all its parts hold; the first was checked."""
        number, start, _ = _opened(whole)
        return self._message(KINDS[number], whole[start:])

    def _check_first(self, data: memoryview, total: int) -> None:
        """Check the first part of a message of ``total`` bytes before it is kept."""
        number, _, end = _opened(data)
        if number == PART:
            raise ProtocolError("a part is inside another part", code="malformed")
        self._check_total(KINDS[number], end, total)

    def _check_total(self, kind: Kind, end: int, total: int) -> None:
        """Check that a message is as long as it says and may be so long."""
        _check_end(kind.name, end, total)
        limit = self.limits.limit_bytes(kind.name)
        if self.expectation is not None:
            limit = self.expectation.most_bytes.get(kind.name, limit)
        if total > limit:
            raise _too_large(kind.name, total, limit)

    def _message(self, kind: Kind, body: memoryview) -> Message:
        """Return the message of a frame whose length was checked."""
        small, big = split(body, kind.big)
        scalars = _scalars(kind, small)
        if not kind.tensors:
            return _control_message(kind, scalars, [bytes(side) for _, side in big])
        tensors = [
            _Received(kind.tensors[number], *read_tensor(field))
            for number, field in big
        ]
        _check_counts(kind, [tensor.name for tensor in tensors])
        if self.expectation is not None:
            self.expectation.check(kind.name, _claim(scalars, tensors))
        return _step_message(kind, scalars, tensors)


class _Received(NamedTuple):
    """A tensor that is still bytes: its field's name, what it claims, its data."""

    name: str
    spec: TensorSpec
    data: memoryview


def _opened(frame: memoryview) -> tuple[int, int, int]:
    """Return which field a frame holds, and where the content starts and ends."""
    for tag_bytes in (1, 2):
        number = _NUMBERS.get(bytes(frame[:tag_bytes]))
        if number is not None:
            length, start = read_varint(frame, tag_bytes)
            return number, start, start + length
    first = frame[0] if frame else 0
    raise ProtocolError(f"no message begins with byte {first}", code="unknown-message")


def _check_end(name: str, end: int, total: int) -> None:
    if end != total:
        raise ProtocolError(
            f"{name}: expected {end} bytes, got {total}", code="malformed"
        )


def _scalars(kind: Kind, small: bytes) -> dict[str, Any]:
    """Return the small fields of a message by name; optional ones may be None."""
    read = parsed(kind.schema, small, kind.name)
    scalars = {name: getattr(read, name) for name in kind.scalars}
    for name in kind.repeated:
        scalars[name] = tuple(scalars[name])
    for name in kind.optional:
        if not read.HasField(name):
            scalars[name] = None
    for name, value in scalars.items():
        if isinstance(value, float | tuple):
            _check_finite(f"{kind.name}.{name}", value)
    return scalars


def _check_finite(where: str, value: float | tuple[float, ...]) -> None:
    numbers = value if isinstance(value, tuple) else (value,)
    for number in numbers:
        if not math.isfinite(number):
            raise ProtocolError(
                f"{where}: expected a finite number, got {number}", code="not-finite"
            )


def _control_message(
    kind: Kind, scalars: dict[str, Any], sides: list[bytes]
) -> Message:
    """Return a message without tensors; of several sealed sides the last one counts."""
    if not sides and kind.name in CIPHER_KINDS:
        raise ProtocolError(f"{kind.name}: no ciphertext came", code="malformed")
    fields = {**scalars, kind.side_name: sides[-1]} if sides else scalars
    return kind.message(**fields)


def _check_counts(kind: Kind, names: list[str]) -> None:
    """Raise unless each tensor is there as often as the schema allows."""
    for name in kind.tensors.values():
        fewest, most = _COUNTS.get(name, (1, 1))
        if not fewest <= names.count(name) <= most:
            raise ProtocolError(
                f"{kind.name}: expected {fewest} to {most} tensors {name!r}, got "
                f"{names.count(name)}",
                code="malformed",
            )


def _claim(scalars: dict[str, Any], tensors: list[_Received]) -> Claim:
    specs = {tensor.name: tensor.spec for tensor in tensors}
    return Claim(
        values=next(specs[name] for name in _TENSORS if name in specs),
        side=tuple(tensor.spec for tensor in tensors if tensor.name == "side"),
        companions=tuple(one.spec for one in tensors if one.name == "companions"),
        labels=specs.get("labels"),
        nonces=specs.get("nonces"),
        is_training=scalars.get("is_training", True),
        has_loss=scalars.get("loss") is not None,
    )


def _step_message(
    kind: Kind, scalars: dict[str, Any], tensors: list[_Received]
) -> Message:
    """Return a message of a step, after making its tensors."""
    made = [
        (name, make_tensor(spec, data, f"{kind.name}.{name}"))
        for name, spec, data in tensors
    ]
    side = tuple(tensor for name, tensor in made if name == "side")
    companions = tuple(tensor for name, tensor in made if name == "companions")
    fields: dict[str, Any] = {
        name: tensor for name, tensor in made if name not in ("side", "companions")
    }
    if companions:
        fields["companions"] = companions
    if "gradient" in fields:
        fields["side"] = side
    elif "values" in fields:
        place = "output" if kind.name == "output" else "code"
        fields[place] = Code(fields.pop("values"), side)
    return kind.message(**scalars, **fields)


def _too_large(name: str, count: int, limit: int) -> ProtocolError:
    return ProtocolError(
        f"{name}: expected at most {limit} bytes, got {count}", code="too-large"
    )
