"""Top-k: the k values of largest magnitude of each sample, and their places.

    activation (B, *shape) ──flatten──► values (B, k), side: places (B, k)
    zeros (B, d) ──values at their places──reshape──► (B, *shape)

The places cost bytes on the way up (two each up to d = 32,768, then four) and nothing
on the way down: the gradient of the other d − k values is zero. ``ratio`` counts values
only; ``layout`` counts every byte.
"""

import torch
from torch import Tensor

from lightsplit.codecs.base import (
    CODECS,
    Code,
    Codec,
    Decoder,
    Encoder,
    Layout,
    TensorSpec,
    check_rows,
    reduced_size,
    size_of,
)
from lightsplit.errors import CodecError


@CODECS.register("topk")
class TopK(Codec):
    """Keeps the k values of largest magnitude and sends their places along.

    Args:
        shape: shape of one activation.
        ratio: d / k at the cut; default: 8.
        seed: not used.
    """

    name = "topk"

    def __init__(
        self,
        shape: tuple[int, ...],
        ratio: float = 8.0,
        seed: int = 0,  # noqa: ARG002  every codec takes a seed, this one draws nothing
    ) -> None:
        size = size_of(tuple(shape))
        super().__init__(shape, reduced_size(size, ratio))
        self.encoder = SparseEncoder(self.shape, self.code_size)
        self.decoder = SparseDecoder(self.shape, self.code_size)

    def layout(self, batch_size: int) -> Layout:
        """Return the layout of the code of ``batch_size`` samples."""
        kept = (batch_size, self.code_size)
        places = TensorSpec(kept, _place_dtype(self.activation_size))
        return Layout(TensorSpec(kept), (places,))


class SparseEncoder(Encoder):
    """Picks the values of largest magnitude."""

    def __init__(self, shape: tuple[int, ...], code_size: int) -> None:
        super().__init__()
        self.shape = shape
        self.code_size = code_size
        self.place_dtype = _place_dtype(size_of(shape))

    def forward(self, activation: Tensor) -> Code:
        """Return the kept values in order of place, and the places."""
        check_rows(activation, self.shape)
        flat = activation.flatten(1)
        magnitude = flat.detach().abs()
        # Sort the places, so that their order reveals nothing and they compress well.
        places = magnitude.topk(self.code_size, sorted=False).indices.sort().values
        return Code(flat.gather(1, places), (places.to(self.place_dtype),))


class SparseDecoder(Decoder):
    """Puts the values back in their places among zeros."""

    def __init__(self, shape: tuple[int, ...], code_size: int) -> None:
        super().__init__()
        self.shape = shape
        self.code_size = code_size
        self.size = size_of(shape)

    def forward(self, code: Code) -> Tensor:
        """Return activations that are zero except for the kept values."""
        check_rows(code.values, (self.code_size,))
        zeros = code.values.new_zeros(code.values.shape[0], self.size)
        lifted = zeros.scatter(1, self._places(code), code.values)
        return lifted.view(lifted.shape[0], *self.shape)

    def _places(self, code: Code) -> Tensor:
        """Return the received places in torch's index type, after checking them."""
        if len(code.side) != 1 or code.side[0].shape != code.values.shape:
            raise CodecError("topk expects one place for each value")
        places = code.side[0].long()
        if bool(((places < 0) | (places >= self.size)).any()):
            raise CodecError(f"topk expects places from 0 to {self.size - 1}")
        return places


def _place_dtype(size: int) -> torch.dtype:
    return torch.int16 if size <= 32768 else torch.int32
