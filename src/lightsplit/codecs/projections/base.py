"""The interface of a projection: R (d × k), orthonormal columns drawn from a seed.

    activation z (B, d) ──Rᵀ──► code (B, k) ──R──► lifted activation (B, d)

R is never trained and never sent: both sides draw it and compare fingerprints. No
state dict contains it. Projecting shortens a vector to about √(k/d) of its length; with
``scale="jl"`` both directions are multiplied by √(d/k), which keeps the length on
average.
"""

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lightsplit.errors import CodecError, ConfigError
from lightsplit.registry import Registry, unknown_name
from lightsplit.seeding import derive

SCALES = ("jl", "orthonormal")


class Projection(nn.Module):
    """A fixed linear map from ``size`` values to ``code_size``, and its adjoint.

    Attributes:
        gain: the factor of both directions; 1 for ``scale="orthonormal"``.
        fingerprint: SHA-256 of the kind, the sizes, the scale and all draws.
    """

    name: str
    fingerprint: str

    def __init__(
        self, *, size: int, code_size: int, seed: int, scale: str = "orthonormal"
    ) -> None:
        super().__init__()
        if not 1 <= code_size <= size:
            raise ConfigError(
                f"code_size must be between 1 and size={size}, got {code_size}"
            )
        check_scale(scale)
        self.size = size
        self.code_size = code_size
        self.seed = seed
        self.scale = scale
        self.gain = math.sqrt(size / code_size) if scale == "jl" else 1.0

    def project(self, activation: Tensor) -> Tensor:
        """Return the code (B, k) of ``activation`` (B, d)."""
        _check(activation, self.size)
        return self._project(activation)

    def lift(self, code: Tensor) -> Tensor:
        """Return the lifted activation (B, d) of ``code`` (B, k)."""
        _check(code, self.code_size)
        return self._lift(code)

    def matrix(self) -> Tensor:
        """Return R times the gain as (d, k), for tests and attacks on small sizes."""
        return self.lift(torch.eye(self.code_size)).T

    def _project(self, activation: Tensor) -> Tensor:
        raise NotImplementedError

    def _lift(self, code: Tensor) -> Tensor:
        raise NotImplementedError

    def _fingerprint_of(self, *draws: NDArray[np.generic]) -> str:
        kind = (self.name, int(self.size), int(self.code_size), self.scale)
        digest = hashlib.sha256(repr(kind).encode())
        for draw in draws:
            little_endian = draw.dtype.newbyteorder("<")
            digest.update(np.ascontiguousarray(draw, dtype=little_endian).data)
        return digest.hexdigest()


PROJECTIONS: Registry[Projection] = Registry("projection")


def run_projection(seed: int) -> int:
    """Return the seed of the projection of a run with ``seed``."""
    return derive(seed, "projection")


def check_projection(options: Mapping[str, Any]) -> None:
    """Raise ConfigError unless a codec's projection and scale have known names."""
    own = options.get("projection_seed")
    if own is not None and own < 0:
        raise ConfigError(f"projection_seed must be 0 or more, got {own}")
    if "projection" in options:
        PROJECTIONS.get(options["projection"])
    if "scale" in options:
        check_scale(options["scale"])


def check_scale(scale: str) -> None:
    """Raise ConfigError unless ``scale`` is known."""
    if scale not in SCALES:
        raise ConfigError(unknown_name("scale", scale, list(SCALES)))


def _check(rows: Tensor, width: int) -> None:
    if rows.ndim != 2 or rows.shape[1] != width:
        raise CodecError(
            f"projection expects (batch, {width}), got {tuple(rows.shape)}"
        )
    if rows.dtype not in (torch.float32, torch.float64):
        raise CodecError(f"projection expects float32 or float64, got {rows.dtype}")
