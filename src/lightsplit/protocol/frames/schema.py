"""Which dataclass is which message of proto/lightsplit.proto.

A dataclass and its schema have the same name, and so do their small fields. The rest of
the table is read from the schema.
"""

from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message as Schema

from lightsplit.errors import ProtocolError
from lightsplit.protocol import control, messages
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.control import Control
from lightsplit.protocol.messages import Encrypted, Reply, Request

Message = Request | Reply | Control | Encrypted


class Kind(NamedTuple):
    """How one kind of message is written in a frame.

    Attributes:
        name: the name of its field in the frame.
        number: the number of that field.
        message: the dataclass.
        schema: the generated class.
        scalars: names of its small fields.
        optional: names of the small fields that may be None.
        repeated: names of the small fields that hold several numbers.
        tensors: names of its tensor fields, by number.
        side: number of the field with a sealed side, or with a ciphertext; None if it
            has no such field.
        side_name: the name of that field; empty if there is none.
        big: numbers of its tensor fields and of its sealed side.
    """

    name: str
    number: int
    message: type[Message]
    schema: type[Schema]
    scalars: tuple[str, ...]
    optional: tuple[str, ...]
    repeated: tuple[str, ...]
    tensors: dict[int, str]
    side: int | None
    side_name: str
    big: frozenset[int]


def kind_of(message: Message) -> Kind:
    """Return the kind of a message; refuse any other object."""
    kind = _BY_CLASS.get(type(message))
    if kind is None:
        raise ProtocolError(
            f"expected a message, got {type(message).__name__}", code="unknown-message"
        )
    return kind


def _make(field: Any) -> Kind:
    """Return the kind of message that stands in ``field`` of a frame."""
    schema = field.message_type
    tensors = {one.number: one.name for one in schema.fields if one.message_type}
    sides = {
        one.number: one.name
        for one in schema.fields
        if one.type == FieldDescriptor.TYPE_BYTES
    }
    big = frozenset([*tensors, *sides])
    scalars = [one for one in schema.fields if one.number not in big]
    return Kind(
        name=field.name,
        number=field.number,
        message=getattr(messages, schema.name, None) or getattr(control, schema.name),
        schema=getattr(pb, schema.name),
        scalars=tuple(one.name for one in scalars),
        optional=tuple(one.name for one in scalars if one.has_presence),
        repeated=tuple(one.name for one in scalars if one.is_repeated),
        tensors=tensors,
        side=next(iter(sides), None),
        side_name=next(iter(sides.values()), ""),
        big=big,
    )


KINDS = {
    field.number: _make(field)
    for field in pb.Frame.DESCRIPTOR.oneofs_by_name["body"].fields
    if field.number != pb.Frame.PART_FIELD_NUMBER
}
_BY_CLASS = {kind.message: kind for kind in KINDS.values()}
