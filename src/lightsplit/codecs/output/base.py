"""The interface of a codec at the back cut, where the server is the sender.

    backbone ─► output u (B, d) ──encoder, the server's──► values (B, k) ─► tail

The decoder is the client's and has no weights. A codec that shortens the output does
not lift it back: the tail starts from k values instead (``tails.py``), so the client
computes less, not more.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from lightsplit.codecs.base import Codec, Layout, TensorSpec, size_of
from lightsplit.codecs.raw import RawDecoder
from lightsplit.errors import ConfigError
from lightsplit.registry import Registry


class OutputCodec(Codec):
    """A codec whose decoder passes the received values on.

    Args:
        shape: shape of one output.
        size: values per sample of a shortened output; default: enough for the classes.
        seed: seed of random matrices.
        classes: the number of the tail's logits.

    Attributes:
        shortens: whether it sends fewer values than the output has.
    """

    shortens: ClassVar[bool] = False

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        size: int | None = None,
        seed: int = 0,
        classes: int = 0,
    ) -> None:
        self.check_options({"size": size})
        whole = size_of(tuple(shape))
        super().__init__(shape, whole if size is None else min(size, whole))
        self.seed = seed
        self.classes = classes
        self.decoder = RawDecoder(self.sent_shape)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError if an option is out of range, before the codec is built."""
        size = options.get("size")
        if size is not None and size < 1:
            raise ConfigError(f"output size must be at least 1, got {size}")

    @property
    def is_whole(self) -> bool:
        """Return whether the output is sent unchanged."""
        return self.code_size == math.prod(self.shape)

    @property
    def sent_shape(self) -> tuple[int, ...]:
        """The shape that the tail receives for one sample."""
        return self.shape if self.is_whole else (self.code_size,)

    def layout(self, batch_size: int) -> Layout:
        """Return the layout of the output of ``batch_size`` samples."""
        return Layout(TensorSpec((batch_size, *self.sent_shape)))

    def matrix(self) -> Tensor | None:
        """Return the map from outputs to sent values, (k, d); None if sent whole."""
        return None


OUTPUT_CODECS: Registry[OutputCodec] = Registry(
    "output codec", "lightsplit.output_codecs"
)
