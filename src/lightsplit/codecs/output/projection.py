"""A fixed orthonormal projection of the output, which is not lifted back.

    output u (B, d) ──flatten──Rᵀ──► values (B, k) ─► tail that starts at k values

Nothing is trained for it and the gradient is exact: the server lifts what comes back
by R, which is autograd's work. R is ``dct``, the same on every machine to the last bit.
"""

from torch import Tensor

from lightsplit.codecs.lightsplit_f import ProjectingEncoder
from lightsplit.codecs.output.base import OUTPUT_CODECS, OutputCodec
from lightsplit.codecs.projections import PROJECTIONS, Projection
from lightsplit.codecs.raw import RawEncoder


@OUTPUT_CODECS.register("projection")
class ProjectedOutput(OutputCodec):
    """Fixed orthonormal projection to k values."""

    name = "projection"

    def __init__(
        self, shape: tuple[int, ...], *, size: int = 0, seed: int = 0, classes: int = 0
    ) -> None:
        super().__init__(shape, size=size, seed=seed, classes=classes)
        self.projection: Projection | None = None
        if self.is_whole:
            self.encoder = RawEncoder(self.shape)
            return
        self.projection = PROJECTIONS.create(
            "dct", size=self.activation_size, code_size=self.code_size, seed=seed
        )
        self.fingerprint = self.projection.fingerprint
        self.encoder = ProjectingEncoder(self.shape, self.projection)

    def matrix(self) -> Tensor | None:
        """Return the map from outputs to what is sent, (k, d); None if it is whole."""
        return None if self.projection is None else self.projection.matrix().T
