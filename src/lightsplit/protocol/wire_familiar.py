"""Frames that differ from an earlier one by the number of the step and by their data.

    frame = opening, small fields, (head of a tensor, its data) …
            ▔▔▔▔▔▔▔  ▔▔▔▔▔▔▔▔▔▔▔▔   ▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔
            as the writer would write them for the step after: nothing left to parse

Nearly all frames of a run are of this sort. What was checked of the earlier frame, its
length, dtypes and shapes, holds for these to the byte; the data is new and is checked.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from lightsplit.codecs.base import TensorSpec
from lightsplit.protocol.wire_schema import Kind, Message
from lightsplit.protocol.wire_writing import pieces

Found = list[tuple[str, TensorSpec, memoryview]]
_STEPS = 2**64  # that the field can count


class Familiar(NamedTuple):
    """What a frame had around its data.

    Attributes:
        kind: of its message.
        scalars: the small fields.
        opening: what stands before them.
        tensors: head, name and spec of each.
        rules: by which it was judged.
        stride: by how many steps the one after is later; outside training it is none.
    """

    kind: Kind
    scalars: dict[str, Any]
    opening: bytes
    tensors: tuple[tuple[bytes, str, TensorSpec], ...]
    rules: Sequence[object]
    stride: int = 1

    def following(self) -> dict[str, Any]:
        """Return the small fields of the frame after."""
        step = (self.scalars["step"] + self.stride) % _STEPS
        return {**self.scalars, "step": step}

    def data_in(self, frame: bytes, scalars: dict[str, Any]) -> Found | None:
        """Return the tensors of a frame with ``scalars``; None if it is none such."""
        begin = self.opening + self.kind.schema(**scalars).SerializeToString()
        if not frame.startswith(begin):
            return None
        view, at = memoryview(frame), len(begin)
        found: Found = []
        for head, name, spec in self.tensors:
            if not frame.startswith(head, at):
                return None
            start = at + len(head)
            at = start + spec.bytes
            found.append((name, spec, view[start:at]))
        return found if at == len(frame) else None


def make_familiar(
    kind: Kind, message: Message, rules: Sequence[object], before: Familiar | None
) -> Familiar:
    """Return what a message that was read looks like in its frame.

    Args:
        kind: of the message.
        message: that was read.
        rules: by which it was judged.
        before: what the last frame of this length was like.
    """
    begin, big, _ = pieces(message)
    scalars = {name: getattr(message, name) for name in kind.scalars}
    small = len(kind.schema(**scalars).SerializeToString())
    tensors = tuple(
        (
            one.head,
            kind.tensors[one.field],
            TensorSpec(tuple(one.content.shape), one.content.dtype),
        )
        for one in big
        if isinstance(one.content, Tensor)
    )
    stride = 1
    if before is not None and before.scalars["client"] == scalars["client"]:
        stride = max(scalars["step"] - before.scalars["step"], 0)
    return Familiar(kind, scalars, begin[: len(begin) - small], tensors, rules, stride)
