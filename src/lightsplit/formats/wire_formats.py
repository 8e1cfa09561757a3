"""The formats of the four messages of a step.

    sender     codec ─► Code ──write──► written Code ─► message
    receiver   message ─► written Code ──read──► Code ─► codec

A message holds written numbers, and scales beside the codec's side information. Every
float32 tensor of a code is written; other tensors pass unchanged. The same tensors
cross in one process and over a network, so both compute the same.

Gradients are means over the batch: small numbers that fp16 would lose. The sender
multiplies them by the number of rows and the receiver divides them again. In fp32 they
travel unchanged.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from lightsplit.codecs import Code, Codec, Layout, TensorSpec
from lightsplit.formats.base import FORMATS, Format
from lightsplit.formats.choices import STEP_KINDS, choice_text, parse_choices
from lightsplit.formats.rounding import ROUNDINGS, Rounding, Stream

# Forward messages need the least error; gradients must be right on average.
DEFAULT_ROUNDING = {
    "code": "nearest",
    "output": "nearest",
    "output_gradient": "dither",
    "code_gradient": "dither",
}
DEFAULT_FORMAT = dict.fromkeys(STEP_KINDS, "fp32")


class Stamp(NamedTuple):
    """The identity of a message; both ends derive its random numbers from it.

    Outside training, numbers are rounded to the nearest: no average over steps is
    taken, and a prediction should not depend on the step at which it is requested.
    """

    kind: str
    client: int
    step: int
    is_training: bool = True


class WireFormats:
    """How each of the four messages is written.

    Args:
        formats: one name for all, or ``message=name`` pairs; the default is fp32.
        rounding: likewise; the default is nearest for codes and outputs, dither for
            gradients.
        seed: seed of the random numbers; both ends must have the same.
    """

    def __init__(
        self, formats: str = "fp32", rounding: str = "", *, seed: int = 0
    ) -> None:
        chosen = parse_choices(formats, FORMATS, DEFAULT_FORMAT)
        rounded = parse_choices(rounding, ROUNDINGS, DEFAULT_ROUNDING)
        self.text = choice_text(chosen)
        self.rounding_text = choice_text(rounded)
        self.seed = seed
        self._formats = {kind: FORMATS.create(name) for kind, name in chosen.items()}
        self._roundings = rounded

    def format(self, kind: str) -> Format:
        """Return the format of the messages of ``kind``."""
        return self._formats[kind]

    def layout(self, kind: str, plain: Layout) -> Layout:
        """Return the layout of a written code whose own layout is ``plain``."""
        if self._formats[kind].is_exact:
            return plain
        first, *rest = (
            written
            for spec in (plain.values, *plain.side)
            for written in self._written(kind, spec)
        )
        return Layout(first, tuple(rest))

    def write(self, stamp: Stamp, code: Code) -> Code:
        """Return ``code`` as written; it must not belong to an autograd graph."""
        form = self._formats[stamp.kind]
        if form.is_exact:
            return code
        rounding = self._rounding(stamp)
        is_packed = not code.values.is_floating_point()
        first, *rest = (
            (code.values,) if is_packed else form.write(code.values, rounding)
        )
        for tensor in code.side:
            is_number = tensor.dtype == torch.float32
            rest += form.write(tensor, rounding) if is_number else (tensor,)
        return Code(first, tuple(rest))

    def read(self, stamp: Stamp, written: Code, plain: Layout | None = None) -> Code:
        """Return the code that was written.

        Without its layout, the values are assumed to have the shape in which they
        travel (only int4 changes the shape) and other tensors to be unchanged.
        """
        form = self._formats[stamp.kind]
        if form.is_exact:
            return written
        layout = plain or Layout(TensorSpec(tuple(written.values.shape)))
        rounding = self._rounding(stamp)
        rest = iter((written.values, *written.side))
        tensors = [
            _read(form, spec, rest, rounding) for spec in (layout.values, *layout.side)
        ]
        return Code(tensors[0], (*tensors[1:], *rest))

    def write_gradient(
        self, stamp: Stamp, codec: Codec | None, gradient: Tensor
    ) -> Code:
        """Return the written gradient at a code's values."""
        if not self._formats[stamp.kind].is_exact:
            gradient = gradient * len(gradient)
        whole = Code(gradient) if codec is None else codec.encode_gradient(gradient)
        return self.write(stamp, whole)

    def read_gradient(
        self, stamp: Stamp, codec: Codec | None, written: Code, plain: Layout
    ) -> Tensor:
        """Return the gradient whose own layout, before writing, is ``plain``."""
        code = self.read(stamp, written, plain)
        gradient = code.values if codec is None else codec.decode_gradient(code)
        if self._formats[stamp.kind].is_exact:
            return gradient
        return gradient.div_(len(gradient))

    def _written(self, kind: str, spec: TensorSpec) -> tuple[TensorSpec, ...]:
        if spec.dtype != torch.float32:
            return (spec,)
        return self._formats[kind].layout(spec)

    def _rounding(self, stamp: Stamp) -> Rounding:
        name = self._roundings[stamp.kind] if stamp.is_training else "nearest"
        stream = Stream(self.seed, stamp.client, stamp.step, stamp.kind)
        return ROUNDINGS.create(name, stream=stream)


def _read(
    form: Format, spec: TensorSpec, rest: Iterator[Tensor], rounding: Rounding
) -> Tensor:
    if spec.dtype != torch.float32:
        return next(rest)
    written = tuple(next(rest) for _ in range(form.tensors))
    return form.read(written, spec.shape, rounding)
