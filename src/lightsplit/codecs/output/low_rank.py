"""The whole output, and its exact gradient in two factors.

    gradient G (B, d) = U (B, r) · S Vᵀ (r, d)      r(B + d) numbers in place of B·d

The gradient of a loss of C logits through a linear tail, (p − y) W, has at most rank C
for any batch. Its singular value decomposition truncated at r = C therefore loses
nothing but rounding. A gradient of a higher rank is refused, because the tail is then
not linear in the output. If two factors would be longer than the gradient, as in a
small batch, the gradient itself is sent.
"""

import torch
from torch import Tensor

from lightsplit.codecs.base import Code, Layout, TensorSpec
from lightsplit.codecs.output.base import OUTPUT_CODECS
from lightsplit.codecs.output.whole import WholeOutput
from lightsplit.errors import CodecError, ConfigError

TOLERANCE = 1e-4  # relative to the largest singular value


@OUTPUT_CODECS.register("low-rank")
class LowRankGradient(WholeOutput):
    """Sends the whole output, and its gradient as two factors of rank ``classes``."""

    name = "low-rank"

    def __init__(
        self, shape: tuple[int, ...], *, seed: int = 0, classes: int = 0
    ) -> None:
        super().__init__(shape, seed=seed, classes=classes)
        if classes < 1:
            raise ConfigError(f"low-rank needs the number of classes, got {classes}")

    def gradient_layout(self, values: TensorSpec) -> Layout:
        """Return the layout of the factors, or of the gradient if that is shorter."""
        rows, width, rank = values.shape[0], self.activation_size, self.classes
        if rank * (rows + width) >= rows * width:
            return Layout(values)
        return Layout(TensorSpec((rows, rank)), (TensorSpec((rank, width)),))

    def encode_gradient(self, gradient: Tensor) -> Code:
        """Return the factors; refuse a gradient of a higher rank."""
        if not self.gradient_layout(TensorSpec(tuple(gradient.shape))).side:
            return Code(gradient)
        try:
            left, sizes, right = torch.linalg.svd(gradient.flatten(1), False)
        except RuntimeError as error:  # torch raises it for numbers that are not finite
            raise CodecError(f"low-rank: {error}") from error
        rank = self.classes
        if rank < len(sizes) and sizes[rank] > TOLERANCE * sizes[0]:
            raise CodecError(
                f"low-rank: the rank of the output gradient is above {rank}, so the "
                "tail is not linear in the output; choose another output codec"
            )
        factor = sizes[:rank, None] * right[:rank]
        return Code(left[:, :rank].contiguous(), (factor,))

    def decode_gradient(self, code: Code) -> Tensor:
        """Return the product of the factors."""
        if not code.side:
            return code.values
        return (code.values @ code.side[0]).view(-1, *self.shape)
