"""The messages of a step in their frames, which all look alike.

    frame = opening, client │ step, training or loss │ (head of a tensor, its data) …
            ▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔                             ▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔
            the same in every step: protobuf makes it once, then it is looked up

The writer puts its frames together from such a template. The reader holds a frame of a
length that it knows against the template of the earlier one: what was checked then, its
kind, dtypes and shapes, holds to the byte; the step and the data are read.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from lightsplit.codecs.base import TensorSpec
from lightsplit.errors import ProtocolError
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.wire_fields import read_varint, tag, varint
from lightsplit.protocol.wire_schema import KINDS, Kind, Message
from lightsplit.protocol.wire_tensors import tensor_head

Found = list[tuple[str, TensorSpec, memoryview]]
TensorKey = tuple[int, torch.dtype, tuple[int, ...]]  # field, dtype and shape

_STEP = varint(pb.CodeMessage.STEP_FIELD_NUMBER << 3)  # the same in every message
_STEPS = 2**63  # what is beyond may have been cut off by protobuf


class Template(NamedTuple):
    """What is the same in frames of one kind, client, length and layout."""

    before: bytes
    heads: tuple[bytes, ...]
    frame_bytes: int


@lru_cache(maxsize=4096)
def template(
    number: int, client: int, between_bytes: int, tensors: tuple[TensorKey, ...]
) -> Template:
    """Return the template of a message.

    Args:
        number: of its kind.
        client: that it is from or for.
        between_bytes: of its other small fields.
        tensors: in the order of their fields.
    """
    kind = KINDS[number]
    heads = [tensor_head(*one) for one in tensors]
    rest = between_bytes + sum(len(head) + data_bytes for head, data_bytes in heads)
    own = small_fields(kind, client=client)
    before = tag(number) + varint(len(own) + rest) + own
    return Template(before, tuple([head for head, _ in heads]), len(before) + rest)


def between(kind: Kind, step: int, *others: Any) -> bytes:
    """Return the small fields of a message after its client."""
    if not 0 <= step < 2 * _STEPS:
        raise ProtocolError(f"{kind.name}: {step} is no step", code="malformed")
    after = _after_step(kind, others)
    return _STEP + varint(step) + after if step else after


def _after_step(kind: Kind, others: Sequence[Any]) -> bytes:
    # A loss is not looked up: 0.0 and -0.0 are one key, but other bytes.
    has_loss = kind.optional and others[0] is not None
    return (_others if has_loss else _known_others)(kind.number, *others)


def _others(number: int, *values: Any) -> bytes:
    kind = KINDS[number]
    return small_fields(kind, **dict(zip(kind.scalars[2:], values, strict=True)))


_known_others = lru_cache(maxsize=64)(_others)


def small_fields(kind: Kind, **scalars: Any) -> bytes:
    """Return small fields as protobuf writes them."""
    try:
        return kind.schema(**scalars).SerializeToString()
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"{kind.name}: {error}", code="malformed") from error


class Familiar(NamedTuple):
    """A frame that was read, to hold later ones against.

    Attributes:
        kind: of its message.
        scalars: its small fields.
        before: all that precedes the step.
        after: the small fields behind it.
        tensors: head, name and spec of each.
        rules: by which it was judged.
    """

    kind: Kind
    scalars: dict[str, Any]
    before: bytes
    after: bytes
    tensors: tuple[tuple[bytes, str, TensorSpec], ...]
    rules: Sequence[object]

    def read(self, frame: bytes) -> tuple[dict[str, Any], Found] | None:
        """Return small fields and tensors of a frame; None if it is none such."""
        if not frame.startswith(self.before):
            return None
        step, at = read_varint(frame, len(self.before))
        if step >= _STEPS or not frame.startswith(self.after, at):
            return None
        at += len(self.after)
        view = memoryview(frame)
        found: Found = []
        for head, name, spec in self.tensors:
            if not frame.startswith(head, at):
                return None
            start = at + len(head)
            at = start + spec.bytes
            found.append((name, spec, view[start:at]))
        if at != len(frame):
            return None
        return {**self.scalars, "step": step}, found


def make_familiar(
    kind: Kind,
    message: Message,
    tensors: Sequence[tuple[int, torch.Tensor]],
    rules: Sequence[object],
) -> Familiar:
    """Return what a message that was read looks like in its frame.

    Args:
        kind: of the message.
        message: that was read.
        tensors: of the message, with the numbers of their fields.
        rules: by which it was judged.
    """
    client, step, *others = values = [getattr(message, name) for name in kind.scalars]
    keys = tuple([(field, one.dtype, tuple(one.shape)) for field, one in tensors])
    made = template(kind.number, client, len(between(kind, step, *others)), keys)
    specs = [
        (kind.tensors[field], TensorSpec(shape, dtype)) for field, dtype, shape in keys
    ]
    return Familiar(
        kind,
        dict(zip(kind.scalars, values, strict=True)),
        made.before + _STEP,
        _after_step(kind, others),
        tuple((head, *one) for head, one in zip(made.heads, specs, strict=True)),
        rules,
    )
