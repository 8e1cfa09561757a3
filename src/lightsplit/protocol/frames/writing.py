"""Messages to frames.

    frame = head, small fields, (head, tensor or sealed side) …

Protobuf writes the small fields. Big ones follow as they lie in memory, so a message is
copied once, into its frames; protobuf alone would copy it three times.
"""

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
    Share,
    Total,
)

_Piece = bytes | Tensor

_VALUES = pb.CodeMessage.VALUES_FIELD_NUMBER  # the same in every message of a step
_SIDE = pb.CodeMessage.SIDE_FIELD_NUMBER
_LABELS = pb.CodeMessage.LABELS_FIELD_NUMBER
_COMPANIONS = pb.CodeMessage.COMPANIONS_FIELD_NUMBER
_NUMBERS = pb.Share.NUMBERS_FIELD_NUMBER
_NONCES = pb.Share.NONCES_FIELD_NUMBER


def to_frames(message: Message) -> list[bytes]:
    """Return the frames of a message, each at most PART_BYTES long."""
    pieces, total = _pieces(message)
    buffers = [data_of(one) if isinstance(one, Tensor) else one for one in pieces]
    if total > PART_BYTES:
        return list(cut(buffers, total))
    return [b"".join(buffers)]


def frame_bytes(message: Message) -> int:
    """Return how long the frames of a message are together, without making them."""
    _, total = _pieces(message)
    return parts_bytes(total) if total > PART_BYTES else total


def _pieces(message: Message) -> tuple[list[_Piece], int]:
    """Return the pieces that a frame is joined from, in their order, and its length."""
    kind = kind_of(message)
    small = _small_fields(kind, message)
    fields: list[_Piece] = [small]
    length = len(small)
    for number, tensor in _tensors(message):
        head = tensor_head(number, tensor.dtype, tensor.shape)
        fields += (head, tensor)
        length += len(head) + tensor.nbytes
    if kind.side is not None:
        sealed = _sealed_side(kind.side, getattr(message, kind.side_name))
        fields += sealed
        length += sum(map(len, sealed))
    head = field_head(kind.number, length)
    return [head, *fields], len(head) + length


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
        case Share() | Total():
            return [(_NUMBERS, message.numbers), (_NONCES, message.nonces)]
    return []


def _code(code: Code) -> list[tuple[int, Tensor]]:
    return [(_VALUES, code.values), *((_SIDE, tensor) for tensor in code.side)]


def _sealed_side(number: int, side: bytes) -> list[bytes]:
    """Return the field of a message's sealed side; no field if the side is empty."""
    return [field_head(number, len(side)), side] if side else []
