"""R without a matrix: two rounds of signs, permutation and DCT; k values are kept.

    z ──D₁──P₁──T──D₂──P₂──T──keep k──► code          Rᵀ = S · T P₂ D₂ · T P₁ D₁

D flips signs, P permutes, T is the orthonormal DCT-II, S keeps k coordinates. Each is
orthogonal or a selection, so RᵀR = I holds for every d; memory is O(d), time
O(d log d). Only integers are drawn, the same on every machine.

T costs one real FFT (Makhoul 1980): with v = x₀ x₂ x₄ … x₅ x₃ x₁ and
W_j = rfft(v)_j · √(2/d) · exp(−iπj/2d), y_j is Re W_j and y_{d−j} is −Im W_j.
Everything between two FFTs (reading Re and Im, D, P, the order of v) is composed into
one gather and one multiplication beforehand:

    select ── rfft · twiddle ── select ── rfft · twiddle ── select (k)      project
    select ◄─ irfft · twiddle ─ select ◄─ irfft · twiddle ─ select          lift
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lightsplit.codecs.projections.base import PROJECTIONS, Projection
from lightsplit.seeding import numpy_generator

Integers = NDArray[np.int64]


@PROJECTIONS.register("dct")
class Dct(Projection):
    """Structured directions: two rounds of signs, permutation and DCT; no matrix."""

    name = "dct"

    def __init__(
        self, *, size: int, code_size: int, seed: int, scale: str = "orthonormal"
    ) -> None:
        super().__init__(size=size, code_size=code_size, seed=seed, scale=scale)
        draw = _draw(size, code_size, seed)
        self.fingerprint = self._fingerprint_of(*draw)
        self.transform = _Transform(size)
        down = _selections(draw, self.gain)
        widths = (size, self.transform.width, self.transform.width)
        up = [part.transposed(to) for part, to in zip(down, widths, strict=True)]
        self.down, self.up = nn.ModuleList(down), nn.ModuleList(reversed(up))

    def _project(self, activation: Tensor) -> Tensor:
        code: Tensor = _Project.apply(activation, self)  # type: ignore[no-untyped-call]
        return code

    def _lift(self, code: Tensor) -> Tensor:
        lifted: Tensor = _Lift.apply(code, self)  # type: ignore[no-untyped-call]
        return lifted


class _Project(torch.autograd.Function):
    """Rᵀ, whose derivative is R."""

    @staticmethod
    def forward(ctx: Any, activation: Tensor, projection: Dct) -> Tensor:
        ctx.projection = projection
        spectrum = projection.transform.spectrum
        first, second, last = projection.down
        code: Tensor = last(spectrum(second(spectrum(first(activation)))))
        return code

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.projection.lift(*gradients), None


class _Lift(torch.autograd.Function):
    """R, whose derivative is Rᵀ."""

    @staticmethod
    def forward(ctx: Any, code: Tensor, projection: Dct) -> Tensor:
        ctx.projection = projection
        signal = projection.transform.signal
        first, second, last = projection.up
        lifted: Tensor = last(signal(second(signal(first(code)))))
        return lifted

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.projection.project(*gradients), None


class _Select(nn.Module):
    """Makes column n from column ``index[n]`` times ``weight[n]``."""

    index: Tensor
    weight: Tensor

    def __init__(self, index: Tensor, weight: Tensor) -> None:
        super().__init__()
        self.register_buffer("index", index, persistent=False)
        self.register_buffer("weight", weight.float(), persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        # An expanded gather is torch's fastest way to permute columns.
        index = self.index.to(rows.device).expand(len(rows), -1)
        return rows.gather(1, index).mul_(self.weight.to(rows))

    def transposed(self, width: int) -> "_Select":
        """Return the adjoint, ``width`` columns wide; columns not taken become 0."""
        index = torch.zeros(width, dtype=torch.int64)
        index[self.index] = torch.arange(len(self.index))
        weight = torch.zeros(width).index_copy(0, self.index, self.weight)
        return _Select(index, weight)


class _Transform(nn.Module):
    """The orthonormal DCT-II, up to the reordering that the selections do."""

    forward_twiddle: Tensor  # (bins, 2)
    inverse_twiddle: Tensor  # (bins, 2)

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.width = 2 * (size // 2 + 1)
        forward, inverse = _twiddles(size)
        self.register_buffer("forward_twiddle", _pairs(forward), persistent=False)
        self.register_buffer("inverse_twiddle", _pairs(inverse), persistent=False)

    def spectrum(self, signal: Tensor) -> Tensor:
        """Return Re and Im of every bin, side by side: (B, d) to (B, width)."""
        bins = torch.fft.rfft(signal)
        bins.mul_(torch.view_as_complex(self.forward_twiddle.to(signal)))
        return torch.view_as_real(bins).flatten(1)

    def signal(self, spectrum: Tensor) -> Tensor:
        """Return the signal of a spectrum: (B, width) to (B, d)."""
        bins = torch.view_as_complex(spectrum.view(len(spectrum), -1, 2))
        bins.mul_(torch.view_as_complex(self.inverse_twiddle.to(spectrum)))
        signal: Tensor = torch.fft.irfft(bins, n=self.size, norm="forward")
        return signal


class _Draw(NamedTuple):
    """All random choices of one projection."""

    first_signs: Integers
    first_order: Integers
    second_signs: Integers
    second_order: Integers
    kept: Integers


def _draw(size: int, code_size: int, seed: int) -> _Draw:
    # Raw words, which NumPy keeps the same in every version, unlike permutation().
    raw = numpy_generator(seed, "projection", Dct.name).bit_generator.random_raw

    def signs() -> Integers:
        return np.where(raw(size) >> np.uint64(63), np.int64(-1), np.int64(1))

    def order() -> Integers:
        return np.argsort(raw(size), kind="stable").astype(np.int64)

    return _Draw(signs(), order(), signs(), order(), order()[:code_size])


def _selections(draw: _Draw, gain: float) -> list[_Select]:
    """Return the three selections of a projection, in order."""
    size = len(draw.first_order)
    outside_in = np.concatenate([np.arange(0, size, 2), np.arange(1, size, 2)[::-1]])
    first = draw.first_order[outside_in]
    second = draw.second_order[outside_in]
    place, sign = _reading(size)
    pairs = (
        (first, draw.first_signs[first]),
        (place[second], sign[second] * draw.second_signs[second]),
        (place[draw.kept], sign[draw.kept] * gain),
    )
    return [_Select(torch.from_numpy(i), torch.from_numpy(w)) for i, w in pairs]


def _reading(size: int) -> tuple[Integers, Integers]:
    """Return the position of y_j among Re and Im of the bins, and its sign there."""
    j = np.arange(size, dtype=np.int64)
    is_real = j <= size // 2
    place = np.where(is_real, 2 * j, 2 * (size - j) + 1)
    return place, np.where(is_real, 1, -1)


def _twiddles(size: int) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    j = np.arange(size // 2 + 1)
    forward = np.sqrt(2 / size) * np.exp(-0.5j * np.pi * j / size)
    forward[0] /= np.sqrt(2)
    inverse = np.exp(0.5j * np.pi * j / size) / np.sqrt(2 * size)
    inverse[0] *= np.sqrt(2)
    if size % 2 == 0:
        inverse[-1] *= 2  # y_{d/2} is read from Re alone; its Im is the same number
    return forward, inverse


def _pairs(twiddle: NDArray[np.complex128]) -> Tensor:
    # Re and Im side by side, since Module.to(dtype) would turn complex into real.
    return torch.view_as_real(torch.from_numpy(twiddle)).float()
