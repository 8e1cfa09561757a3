"""Frames that differ from an earlier one by the number of the step and by their data.

    frame = opening, small fields, (head of a tensor, its data) …
            ▔▔▔▔▔▔▔  ▔▔▔▔▔▔▔▔▔▔▔▔   ▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔
            as the writer would write them for the step after: nothing left to parse

Nearly all frames of a run are of this sort. What was checked of the earlier frame, its
length, dtypes and shapes, holds for these to the byte; the data is new and is checked.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from lightsplit.codecs.base import TensorSpec
from lightsplit.protocol.wire_schema import Kind, Message
from lightsplit.protocol.wire_writing import (
    Scalars,
    one_step_on,
    pieces,
    scalars_of,
    small_fields,
)

Found = list[tuple[str, TensorSpec, memoryview]]


@dataclass(slots=True)
class Familiar:
    """What a frame had around its data.

    Attributes:
        kind: of its message.
        following: the small fields of the frame after.
        opening: what stands before them.
        tensors: head, name and spec of each.
        rules: by which it was judged.
        stride: by how many steps the one after is later; outside training it is none.
    """

    kind: Kind
    following: Scalars
    opening: bytes
    tensors: tuple[tuple[bytes, str, TensorSpec], ...]
    rules: Sequence[object]
    stride: int = 1

    def foresee(self) -> None:
        """Have it ready what the frame after begins with."""
        small_fields(self.kind, self.following)

    def data_in(self, frame: bytes) -> Found | None:
        """Return the tensors of the frame after; None if this is not the one."""
        begin = self.opening + small_fields(self.kind, self.following)
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

    def go_on(self) -> Scalars:
        """Return the small fields of the frame after, which is the last one now."""
        last = self.following
        self.following = one_step_on(self.kind, last, self.stride)
        return last


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
    scalars = scalars_of(message, kind)
    opening = begin.removesuffix(small_fields(kind, scalars))
    tensors = tuple(
        (
            one.head,
            kind.tensors[one.field],
            TensorSpec(tuple(one.content.shape), one.content.dtype),
        )
        for one in big
        if isinstance(one.content, Tensor)
    )
    stride = 1 if before is None else _stride(kind, scalars, before)
    following = one_step_on(kind, scalars, stride)
    return Familiar(kind, following, opening, tensors, rules, stride)


def _stride(kind: Kind, scalars: Scalars, before: Familiar) -> int:
    """Return by how many steps a frame is later than the last one of its client."""
    at = kind.step_at
    if scalars[:at] != before.following[:at]:
        return 1
    stride: int = scalars[at] - (before.following[at] - before.stride)
    return max(stride, 0)
