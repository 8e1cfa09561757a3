"""A linear map of the output that the server trains.

    output u (B, d) ──flatten──M──► values (B, k) ─► tail that starts at k values

M starts as the orthonormal projection that ``projection`` would keep. The server trains
it with the backbone; the client takes no part in it.
"""

import torch
from torch import Tensor, nn

from lightsplit.codecs.base import Code, Encoder, check_rows
from lightsplit.codecs.output.base import OUTPUT_CODECS, OutputCodec
from lightsplit.codecs.projections import PROJECTIONS
from lightsplit.codecs.raw import RawEncoder


@OUTPUT_CODECS.register("linear")
class LinearOutput(OutputCodec):
    """Linear map to k values that the server trains."""

    name = "linear"
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
        if self.is_whole:
            self.encoder = RawEncoder(self.shape)
            return
        start = PROJECTIONS.create(
            "dct", size=self.activation_size, code_size=self.code_size, seed=seed
        )
        self.fingerprint = start.fingerprint
        self.encoder = MappingEncoder(self.shape, start.matrix().T)

    def matrix(self) -> Tensor | None:
        """Return the map from outputs to sent values, (k, d); None if sent whole."""
        if not isinstance(self.encoder, MappingEncoder):
            return None
        return self.encoder.map.weight.detach()


class MappingEncoder(Encoder):
    """Multiplies each output by a trained matrix."""

    def __init__(self, shape: tuple[int, ...], start: Tensor) -> None:
        super().__init__()
        self.shape = shape
        self.map = nn.Linear(start.shape[1], start.shape[0], bias=False)
        with torch.no_grad():
            self.map.weight.copy_(start)

    def forward(self, output: Tensor) -> Code:
        """Return the k values of each sample."""
        check_rows(output, self.shape)
        return Code(self.map(output.flatten(1)))
