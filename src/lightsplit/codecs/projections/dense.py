"""R as a matrix: the orthonormal columns of a QR of random entries.

    A (d × k) random ──QR──► Q T ──signs of diag(T)──► R = Q · sign(diag T)

With Gaussian entries and diag(T) made positive, R is Haar distributed (Mezzadri 2007).
The paper's Algorithm 1 takes entries from U(0, 1) instead. They have the mean ½, so
span(R) almost contains the constant vector, and a code reveals the mean of its
activation. ``uniform`` reproduces this; ``haar`` avoids it.

The fingerprint covers A, not R: QR with another number of threads or another BLAS
differs by 1e-15, enough to round one float32 in a million differently.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightsplit.codecs.projections.base import PROJECTIONS, Projection
from lightsplit.seeding import numpy_generator


class Dense(Projection):
    """A projection that stores all d × k numbers."""

    columns: Tensor  # (d, k)

    def __init__(
        self, *, size: int, code_size: int, seed: int, scale: str = "orthonormal"
    ) -> None:
        super().__init__(size=size, code_size=code_size, seed=seed, scale=scale)
        entries = self._entries(numpy_generator(seed, "projection", self.name))
        self.fingerprint = self._fingerprint_of(entries)
        columns = self.gain * _orthonormal_columns(entries)
        self.register_buffer("columns", columns.float(), persistent=False)

    def _entries(self, generator: np.random.Generator) -> NDArray[np.float64]:
        raise NotImplementedError

    def _project(self, activation: Tensor) -> Tensor:
        return activation @ self.columns.to(activation)

    def _lift(self, code: Tensor) -> Tensor:
        return code @ self.columns.to(code).T


@PROJECTIONS.register("haar")
class Haar(Dense):
    """Directions drawn uniformly: Gaussian entries made orthonormal."""

    name = "haar"

    def _entries(self, generator: np.random.Generator) -> NDArray[np.float64]:
        return generator.standard_normal((self.size, self.code_size))


@PROJECTIONS.register("uniform")
class Uniform(Dense):
    """Algorithm 1 of the paper: U(0, 1) entries made orthonormal; keeps the mean."""

    name = "uniform"

    def _entries(self, generator: np.random.Generator) -> NDArray[np.float64]:
        return generator.random((self.size, self.code_size))


def _orthonormal_columns(entries: NDArray[np.float64]) -> Tensor:
    columns, triangle = torch.linalg.qr(torch.from_numpy(entries))
    is_negative = torch.diagonal(triangle) < 0
    flipped: Tensor = torch.where(is_negative, -columns, columns)
    return flipped
