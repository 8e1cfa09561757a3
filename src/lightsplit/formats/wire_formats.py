"""The formats of the four messages of a step.

    sender     codec ─► Code ──write──► Code of what travels ─► message
    receiver   message ─► Code of what came ──read──► Code ─► codec

A message holds what travels: written numbers, and scales beside the codec's side
information. Every float32 tensor of a code is written; others pass as they are. In one
process and over a network the same tensors cross, so both compute the same.

Gradients are those of a mean over the batch, small numbers that fp16 would lose. They
travel multiplied by the number of rows and are divided where they arrive; in fp32 they
travel as they are.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from lightsplit.codecs import Code, Codec, Layout, TensorSpec
from lightsplit.formats.base import FORMATS, Format
from lightsplit.formats.choices import STEP_KINDS, choice_text, parse_choices
from lightsplit.formats.rounding import ROUNDINGS, Rounding, Stream

# What goes forward keeps the least error, what comes back must be right on average.
DEFAULT_ROUNDING = {
    "code": "nearest",
    "output": "nearest",
    "output_gradient": "dither",
    "code_gradient": "dither",
}
DEFAULT_FORMAT = dict.fromkeys(STEP_KINDS, "fp32")


class Stamp(NamedTuple):
    """Which message it is; both ends derive its random numbers from this.

    Outside training there is nothing to be right about on average, and a prediction
    should not depend on when it was asked for: numbers are rounded to the nearest.
    """

    kind: str
    client: int
    step: int
    is_training: bool = True


class WireFormats:
    """How each of the four messages is written.

    Args:
        formats: one name for all, or ``message=name`` pairs; fp32 where none is named.
        rounding: the same; nearest on the way forward and dither on the way back where
            none is named.
        seed: of the random numbers; both ends must have the same.
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
        # The messages of a run have few layouts, and each is asked for in every step.
        self.layout = lru_cache(maxsize=256)(self._layout)

    def format(self, kind: str) -> Format:
        """Return the format of the messages of ``kind``."""
        return self._formats[kind]

    def _layout(self, kind: str, plain: Layout) -> Layout:
        """Return what travels for a code of layout ``plain``."""
        first, *rest = (
            written
            for spec in (plain.values, *plain.side)
            for written in self._written(kind, spec)
        )
        return Layout(first, tuple(rest))

    def gradient_layout(
        self, kind: str, codec: Codec | None, values: TensorSpec
    ) -> Layout:
        """Return what travels for the gradient at a code's ``values``."""
        return self.layout(kind, _gradient_layout(codec, values))

    def write(self, stamp: Stamp, code: Code) -> Code:
        """Return what travels for ``code``, which belongs to no graph."""
        form = self._formats[stamp.kind]
        if form.is_exact:
            return code
        rounding = self._rounding(stamp)
        first, *rest = form.write(code.values, rounding)
        for tensor in code.side:
            is_number = tensor.dtype == torch.float32
            rest += form.write(tensor, rounding) if is_number else (tensor,)
        return Code(first, tuple(rest))

    def read(self, stamp: Stamp, written: Code, plain: Layout | None = None) -> Code:
        """Return the code that was written.

        Without its layout the values are taken to have the shape that they travel in,
        which only int4 changes, and what comes beside them to be written as it is.
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
        """Return what travels for the gradient at a code's values."""
        if not self._formats[stamp.kind].is_exact:
            gradient = gradient * len(gradient)
        whole = Code(gradient) if codec is None else codec.encode_gradient(gradient)
        return self.write(stamp, whole)

    def read_gradient(
        self, stamp: Stamp, codec: Codec | None, written: Code, values: TensorSpec
    ) -> Tensor:
        """Return the gradient that was written for values of this shape."""
        code = self.read(stamp, written, _gradient_layout(codec, values))
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


def _gradient_layout(codec: Codec | None, values: TensorSpec) -> Layout:
    return Layout(values) if codec is None else codec.gradient_layout(values)
