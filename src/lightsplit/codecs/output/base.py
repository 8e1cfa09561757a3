"""What every codec of the back cut is.

    backbone ─► output u (B, d) ──encoder, the server's──► values (B, k) ─► tail

The decoder, which is the client's, has no weights. A codec that shortens the output
does not lift it back: the tail starts at k values instead (``tails.py``), so that the
client has less to compute and not more.
"""

import math

from torch import Tensor

from lightsplit.codecs.base import Codec, Layout, TensorSpec, size_of
from lightsplit.codecs.raw import RawDecoder
from lightsplit.errors import ConfigError
from lightsplit.registry import Registry


class OutputCodec(Codec):
    """A codec whose decoder hands on what came.

    Args:
        shape: of one output.
        size: values per sample that are sent; 0 or more than there are is all of them.
        seed: of what is drawn.
        classes: how many logits the tail makes.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        size: int = 0,
        seed: int = 0,
        classes: int = 0,
    ) -> None:
        if size < 0:
            raise ConfigError(f"output size must be 0 or more, got {size}")
        whole = size_of(tuple(shape))
        super().__init__(shape, min(size or whole, whole))
        self.seed = seed
        self.classes = classes
        self.decoder = RawDecoder(self.sent_shape)

    @property
    def is_whole(self) -> bool:
        """Say whether the output is sent as it is."""
        return self.code_size == math.prod(self.shape)

    @property
    def sent_shape(self) -> tuple[int, ...]:
        """Shape of what the tail receives for one sample."""
        return self.shape if self.is_whole else (self.code_size,)

    def layout(self, batch_size: int) -> Layout:
        """Return what a batch of ``batch_size`` samples puts on the wire."""
        return Layout(TensorSpec((batch_size, *self.sent_shape)))

    def matrix(self) -> Tensor | None:
        """Return the map from outputs to what is sent, (k, d); None if it is whole."""
        return None


OUTPUT_CODECS: Registry[OutputCodec] = Registry("output codec")
