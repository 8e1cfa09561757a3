"""Top-k: the k values of largest magnitude of each sample, and their places.

    activation (B, *shape) ──flatten──► values (B, k), side: places (B, k)
    zeros (B, d) ──values at their places──reshape──► (B, *shape)

On the wire, the places of a sample take ⌈log₂ C(d, k)⌉ bits (``place_coding``). They
cost nothing on the way down: the gradient of the other d − k values is zero. ``ratio``
counts values only; ``packed_layout`` counts every byte.
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
from lightsplit.codecs.place_coding import (
    pack_places,
    packed_bytes,
    unpack_places,
)
from lightsplit.errors import CodecError
from lightsplit.part_facts import PartFacts


@CODECS.register("topk")
class TopK(Codec):
    """Keeps the k values of largest magnitude and sends their places along.

    Args:
        shape: shape of one activation.
        ratio: d / k at the cut; default: 8.
        seed: not used.
    """

    name = "topk"
    facts = PartFacts(
        source="common practice; for gradients Aji, Heafield, EMNLP 2017",
        assumes="large values matter most",
        client_cost="a search for the k largest; coding the places",
        attacker="decodes places and values first; the places alone tell much",
        status="faithful",
    )

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
        return Layout(TensorSpec(kept), (TensorSpec(kept, torch.int32),))

    def pack(self, code: Code) -> Code:
        """Return the values as they are, and the places in the fewest bits."""
        places = pack_places(code.side[0], self.activation_size)
        return Code(code.values, (places,))

    def unpack(self, packed: Code) -> Code:
        """Return values and places; refuse places that cannot be."""
        sizes = len(packed.values), self.activation_size, self.code_size
        places = unpack_places(packed.side[0], *sizes)
        return Code(packed.values, (places.int(),))

    def packed_layout(self, batch_size: int) -> Layout:
        """Return the layout of the packed code of ``batch_size`` samples."""
        count = packed_bytes(batch_size, self.activation_size, self.code_size)
        plain = self.layout(batch_size).values
        return Layout(plain, (TensorSpec((count,), torch.uint8),))


class SparseEncoder(Encoder):
    """Picks the values of largest magnitude."""

    def __init__(self, shape: tuple[int, ...], code_size: int) -> None:
        super().__init__()
        self.shape = shape
        self.code_size = code_size

    def forward(self, activation: Tensor) -> Code:
        """Return the kept values in order of place, and the places."""
        check_rows(activation, self.shape)
        flat = activation.flatten(1)
        # Sort the places, so that their order reveals nothing and they compress well.
        places = self.choose(flat.detach().abs()).sort().values
        return Code(flat.gather(1, places), (places.int(),))

    def choose(self, magnitudes: Tensor) -> Tensor:
        """Return the places (B, k) to keep, in any order, given magnitudes (B, d)."""
        return magnitudes.topk(self.code_size, sorted=False).indices


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
