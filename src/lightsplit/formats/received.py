"""Values as the other end reads them, with a gradient.

    values ──write, read──► values at the receiver
    values ◄──── the gradient, as it is ────

Rounding has no useful derivative, so the gradient passes straight through, as it does
in training. An attacker puts this module behind the encoder of its own copy of the
client, and then its codes match the codes that it received.
"""

from typing import Any

import torch
from torch import Tensor, nn

from lightsplit.codecs import Code, Codec, Layout, TensorSpec
from lightsplit.errors import ConfigError
from lightsplit.formats.wire_formats import Stamp, WireFormats
from lightsplit.registry import unknown_name

FORWARD_KINDS = ("code", "output")


class AsReceived(nn.Module):
    """Maps the values of a message to the values that its receiver reads.

    Args:
        formats: the formats of the run.
        kind: ``code``, or ``output`` for a curious client.
        codec: of the cut; values that it packs itself are read as they are.
    """

    def __init__(
        self, formats: WireFormats, kind: str = "code", codec: Codec | None = None
    ) -> None:
        super().__init__()
        if kind not in FORWARD_KINDS:
            raise ConfigError(unknown_name("kind of values", kind, list(FORWARD_KINDS)))
        self.formats = formats
        self.kind = kind
        self.is_packed = codec is not None and codec.packed_bits > 0

    def forward(
        self, values: Tensor, client: int = 0, step: int | None = None
    ) -> Tensor:
        """Return the values as the receiver reads them, rounded as at ``step``.

        Without a step they are rounded to the nearest, as outside training.
        """
        if self.is_packed:
            return values
        stamp = Stamp(self.kind, client, step or 0, is_training=step is not None)
        written = self.formats.write(stamp, Code(values.detach()))
        plain = Layout(TensorSpec(tuple(values.shape)))
        read = self.formats.read(stamp, written, plain).values
        passed: Tensor = _StraightThrough.apply(values, read)  # type: ignore[no-untyped-call]
        return passed


class _StraightThrough(torch.autograd.Function):
    """Returns the second argument; the gradient goes to the first."""

    @staticmethod
    def forward(_ctx: Any, _values: Tensor, read: Tensor) -> Tensor:
        return read.view_as(read)

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None
