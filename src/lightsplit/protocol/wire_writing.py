"""Messages to frames.

    frame = tag, length, small fields, (head, tensor or sealed side) …

Protobuf writes the small fields. What is big is put behind them as it lies in memory,
so that a message is copied once, into its frames; by protobuf alone it would be thrice.
``frame_bytes`` adds up the same pieces without the copy, or knows the sum already from
a message that was written or read: each is counted at both ends.
"""

from collections.abc import Iterator

from torch import Tensor

from lightsplit.codecs.base import Code
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.messages import (
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
)
from lightsplit.protocol.wire_fields import tag, varint
from lightsplit.protocol.wire_schema import PART, Kind, Message, kind_of
from lightsplit.protocol.wire_templates import between, small_fields, template
from lightsplit.protocol.wire_tensors import data_of

Buffer = bytes | memoryview
PART_BYTES = 2 * 2**20  # no frame is longer; gRPC's default limit is 4 MiB

_LENGTH = "_frame_bytes"
_PART_DATA = PART_BYTES - 64  # leaves room for what a part says besides
_VALUES = pb.CodeMessage.VALUES_FIELD_NUMBER  # the same in every message of a step
_SIDE_TENSOR = pb.CodeMessage.SIDE_FIELD_NUMBER
_LABELS = pb.CodeMessage.LABELS_FIELD_NUMBER


def to_frames(message: Message) -> list[bytes]:
    """Return the frames of a message, each at most PART_BYTES long."""
    return [b"".join(pieces) for pieces in to_pieces(message)]


def to_pieces(message: Message) -> list[list[Buffer]]:
    """Return the frames in the pieces that they are joined from, tensors uncopied."""
    pieces, total = _pieces(message)
    buffers = [data_of(one) if isinstance(one, Tensor) else one for one in pieces]
    if total <= PART_BYTES:
        remember_length(message, total)
        return [buffers]
    frames: list[list[Buffer]] = [
        [_part_head(index, total), *views] for index, views in enumerate(_cut(buffers))
    ]
    remember_length(message, sum(len(one) for pieces in frames for one in pieces))
    return frames


def frame_bytes(message: Message) -> int:
    """Return how long the frames of a message are together, without making them."""
    known: int | None = vars(message).get(_LENGTH)
    return _count(message) if known is None else known


def remember_length(message: Message, count: int) -> None:
    """Note in a message how long its frames were; it is not one of its fields."""
    vars(message)[_LENGTH] = count


def _count(message: Message) -> int:
    _, total = _pieces(message)
    if total <= PART_BYTES:
        return total
    parts = -(-total // _PART_DATA)
    return total + sum(len(_part_head(index, total)) for index in range(parts))


def _pieces(message: Message) -> tuple[list[bytes | Tensor], int]:
    """Return what a frame is joined from, and its whole length."""
    kind = kind_of(message)
    if not kind.tensors:
        return _pieces_of_control(kind, message)
    client, *scalars = [getattr(message, name) for name in kind.scalars]
    small = between(kind, *scalars)
    tensors = tensors_of(message)
    keys = tuple([(field, one.dtype, one.shape) for field, one in tensors])
    made = template(kind.number, client, len(small), keys)
    pieces: list[bytes | Tensor] = [made.before, small]
    for head, (_, tensor) in zip(made.heads, tensors, strict=True):
        pieces += (head, tensor)
    return pieces, made.frame_bytes


def _pieces_of_control(
    kind: Kind, message: Message
) -> tuple[list[bytes | Tensor], int]:
    small = small_fields(kind, **{n: getattr(message, n) for n in kind.scalars})
    side: bytes = getattr(message, "side", b"")
    if side:
        small += tag(kind.side) + varint(len(side))
    head = tag(kind.number) + varint(len(small) + len(side)) + small
    return [head, side], len(head) + len(side)


def tensors_of(message: Message) -> list[tuple[int, Tensor]]:
    """Return the tensors of a message with their fields' numbers, in that order."""
    match message:
        case CodeMessage(code=code, labels=labels):
            found = _tensors(code)
            return found if labels is None else [*found, (_LABELS, labels)]
        case OutputMessage(output=code):
            return _tensors(code)
        case OutputGradient() | CodeGradient():
            return _tensors(message.written)
    return []


def _tensors(code: Code) -> list[tuple[int, Tensor]]:
    return [(_VALUES, code.values), *((_SIDE_TENSOR, tensor) for tensor in code.side)]


def _cut(buffers: list[Buffer]) -> Iterator[list[memoryview]]:
    """Yield the buffers in groups of _PART_DATA bytes, the last one shorter."""
    views: list[memoryview] = []
    room = _PART_DATA
    for buffer in buffers:
        rest = memoryview(buffer)
        while len(rest) >= room:
            yield [*views, rest[:room]]
            views, rest, room = [], rest[room:], _PART_DATA
        views.append(rest)
        room -= len(rest)
    if room < _PART_DATA:
        yield views


def _part_head(index: int, total: int) -> bytes:
    """Return all that precedes the data in the frame of a part."""
    count = min(_PART_DATA, total - index * _PART_DATA)
    small = pb.Part(total=0 if index else total, index=index).SerializeToString()
    small += tag(pb.Part.DATA_FIELD_NUMBER) + varint(count)
    return tag(PART) + varint(len(small) + count) + small
