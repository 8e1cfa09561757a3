"""Messages to frames.

    frame = head, small fields, (head, tensor or sealed side) …

Protobuf writes the small fields. Big ones follow as they lie in memory, so a message is
copied once, into its frames; protobuf alone would copy it three times.
"""

from collections.abc import Sequence

from torch import Tensor

from lightsplit.codecs.base import Code
from lightsplit.errors import ProtocolError
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.frames.fields import field_head
from lightsplit.protocol.frames.parts import PART_BYTES, cut, parts_bytes
from lightsplit.protocol.frames.schema import Kind, Message, kind_of
from lightsplit.protocol.frames.tensors import data_of, tensor_head
from lightsplit.protocol.messages import (
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
    Recall,
    Release,
)

_Piece = bytes | Tensor

_VALUES = pb.CodeMessage.VALUES_FIELD_NUMBER  # the same in every message of a step
_SIDE = pb.CodeMessage.SIDE_FIELD_NUMBER
_LABELS = pb.CodeMessage.LABELS_FIELD_NUMBER
_COMPANIONS = pb.CodeMessage.COMPANIONS_FIELD_NUMBER


def to_frames(message: Message) -> list[bytes]:
    """Return the frames of a message, each at most PART_BYTES long."""
    pieces = _pieces(message)
    total = _length(pieces)
    buffers = [data_of(one) if isinstance(one, Tensor) else one for one in pieces]
    if total > PART_BYTES:
        return list(cut(buffers, total))
    return [b"".join(buffers)]


def frame_bytes(message: Message) -> int:
    """Return how long the frames of a message are together, without making them."""
    total = _length(_pieces(message))
    return parts_bytes(total) if total > PART_BYTES else total


def _pieces(message: Message) -> list[_Piece]:
    """Return the pieces that a frame is joined from, in their order."""
    kind = kind_of(message)
    fields: list[_Piece] = [_small_fields(kind, message)]
    for number, tensor in _tensors(message):
        fields += (tensor_head(number, tensor.dtype, tensor.shape), tensor)
    if kind.side is not None:
        fields += _sealed_side(kind.side, message)
    return [field_head(kind.number, _length(fields)), *fields]


def _length(pieces: Sequence[_Piece]) -> int:
    return sum(
        piece.nbytes if isinstance(piece, Tensor) else len(piece) for piece in pieces
    )


def _small_fields(kind: Kind, message: Message) -> bytes:
    """Return the small fields of a message, as protobuf writes them."""
    scalars = {name: getattr(message, name) for name in kind.scalars}
    try:
        return kind.schema(**scalars).SerializeToString()
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"{kind.name}: {error}", code="malformed") from error


def _tensors(message: Message) -> list[tuple[int, Tensor]]:
    """Return the tensors of a message with their fields' numbers, in that order."""
    match message:
        case CodeMessage(code=code, labels=labels, companions=companions):
            truth = [] if labels is None else [(_LABELS, labels)]
            return [*_code(code), *truth, *((_COMPANIONS, one) for one in companions)]
        case OutputMessage(output=code) | Release(code=code):
            return _code(code)
        case Recall(numbers=numbers):
            return [(_VALUES, numbers)]
        case OutputGradient() | CodeGradient():
            return _code(message.written)
    return []


def _code(code: Code) -> list[tuple[int, Tensor]]:
    return [(_VALUES, code.values), *((_SIDE, tensor) for tensor in code.side)]


def _sealed_side(number: int, message: Message) -> list[bytes]:
    """Return the field of a message's sealed side; no field if the side is empty."""
    side: bytes = getattr(message, "side", b"")
    return [field_head(number, len(side)), side] if side else []
