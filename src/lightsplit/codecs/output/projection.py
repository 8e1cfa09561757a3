"""A fixed orthonormal projection of the output, which is not lifted back.

    output u (B, d) ──flatten──Rᵀ──► values (B, k) ─► tail that starts at k values

Nothing is trained for it and the gradient is exact: autograd lifts the returning
gradient with R at the server. R is ``dct``, which is bit-identical on every machine.
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
    shortens = True

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        size: int | None = None,
        seed: int = 0,
        classes: int = 0,
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
        """Return the map from outputs to sent values, (k, d); None if sent whole."""
        return None if self.projection is None else self.projection.matrix().T
