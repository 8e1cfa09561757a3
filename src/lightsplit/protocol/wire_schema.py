"""Which dataclass is which message of proto/lightsplit.proto.

A dataclass and its schema have the same name, and small fields the same names too; the
rest of the table is read from the schema.
"""

from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message as Schema

from lightsplit.errors import ProtocolError
from lightsplit.protocol import control, messages
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.control import Control
from lightsplit.protocol.messages import Reply, Request

Message = Request | Reply | Control

PART = pb.Frame.PART_FIELD_NUMBER


class Kind(NamedTuple):
    """How one kind of message stands in a frame.

    Attributes:
        name: of its field in the oneof.
        number: of that field.
        message: the dataclass.
        schema: the generated class.
        scalars: its small fields.
        optional: those of them that may be None.
        tensors: its fields of tensors, by number.
        side: number of the field of a sealed side, 0 where there is none.
        big: numbers of both.
    """

    name: str
    number: int
    message: type[Any]
    schema: type[Schema]
    scalars: tuple[str, ...]
    optional: tuple[str, ...]
    tensors: dict[int, str]
    side: int
    big: frozenset[int]


def kind_of(message: Message) -> Kind:
    """Return the kind of a message, or refuse what is none."""
    kind = _BY_CLASS.get(type(message))
    if kind is None:
        raise ProtocolError(
            f"{type(message).__name__} is no message", code="unknown-message"
        )
    return kind


def _make(field: Any) -> Kind:
    schema = field.message_type
    inner = list(schema.fields)
    tensors = [one for one in inner if one.message_type is not None]
    sides = [one for one in inner if one.type == FieldDescriptor.TYPE_BYTES]
    scalars = [one for one in inner if one not in tensors and one not in sides]
    return Kind(
        name=field.name,
        number=field.number,
        message=getattr(messages, schema.name, None) or getattr(control, schema.name),
        schema=getattr(pb, schema.name),
        scalars=tuple(one.name for one in scalars),
        optional=tuple(one.name for one in scalars if one.has_presence),
        tensors={one.number: one.name for one in tensors},
        side=sum(one.number for one in sides),
        big=frozenset(one.number for one in (*tensors, *sides)),
    )


KINDS = {
    field.number: _make(field)
    for field in pb.Frame.DESCRIPTOR.oneofs_by_name["body"].fields
    if field.number != PART
}
_BY_CLASS = {kind.message: kind for kind in KINDS.values()}
