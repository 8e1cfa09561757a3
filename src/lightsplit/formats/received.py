"""Values as the other end reads them, with a gradient: for models of what a peer sees.

    values ──write, read──► what the receiver holds
    values ◄──── the gradient, as it is ────

Rounding has no useful derivative; the gradient passes straight through, as it does in
training, where it is taken at what was read. An attacker who puts this behind a codec's
encoder, in its own copy of the client, matches what it really received.
"""

from typing import Any

import torch
from torch import Tensor, nn

from lightsplit.codecs import Code, Layout, TensorSpec
from lightsplit.errors import ConfigError
from lightsplit.formats.wire_formats import Stamp, WireFormats
from lightsplit.registry import unknown_name

FORWARD_KINDS = ("code", "output")


class AsReceived(nn.Module):
    """Maps the values of a message to what its receiver reads.

    Args:
        formats: of the run.
        kind: ``code``, or ``output`` for a curious client.
    """

    def __init__(self, formats: WireFormats, kind: str = "code") -> None:
        super().__init__()
        if kind not in FORWARD_KINDS:
            raise ConfigError(unknown_name("kind of values", kind, list(FORWARD_KINDS)))
        self.formats = formats
        self.kind = kind

    def forward(
        self, values: Tensor, client: int = 0, step: int | None = None
    ) -> Tensor:
        """Return the values as read; those of ``step`` are rounded as they were then.

        Without a step they are rounded to the nearest, as outside training.
        """
        stamp = Stamp(self.kind, client, step or 0, is_training=step is not None)
        written = self.formats.write(stamp, Code(values.detach()))
        plain = Layout(TensorSpec(tuple(values.shape)))
        read = self.formats.read(stamp, written, plain).values
        passed: Tensor = _StraightThrough.apply(values, read)  # type: ignore[no-untyped-call]
        return passed


class _StraightThrough(torch.autograd.Function):
    """Gives the second argument forward; backward the gradient goes to the first."""

    @staticmethod
    def forward(_ctx: Any, _values: Tensor, read: Tensor) -> Tensor:
        return read.view_as(read)

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None
