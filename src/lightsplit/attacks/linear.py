"""Linear MMSE: the best linear guess of an image from its code.

    x̂ = E[x] + Cov(x, z̃) (Cov(z̃) + r·I)⁻¹ (z̃ − E[z̃])

Means and covariances come from pairs of known images and their codes. The ridge ``r``,
relative to the mean variance of a code's value, is the candidate that does best on a
tenth of the pairs which the fit has not seen; the estimate is then fitted to all.

What may surprise: the projection R is nowhere in it. Estimated from pairs, the
covariances hold R already, so knowing it adds nothing. And lifting back with R is a far
weaker inverse: it explains k/d of an activation where this one explains most.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from lightsplit.attacks.base import ATTACKS, Kind, Progress, Reconstruction, silent
from lightsplit.attacks.knowledge import Pairs
from lightsplit.attacks.view import ServerView
from lightsplit.errors import AuditError
from lightsplit.seeding import numpy_generator

RIDGES = (1e-8, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
CHUNK = 2048  # rows that are in float64 at a time


@dataclass(frozen=True, eq=False)
class LinearEstimate:
    """A linear map from codes to targets with both means, in float64."""

    weight: Tensor
    code_mean: Tensor
    target_mean: Tensor
    target_shape: tuple[int, ...]

    def __call__(self, codes: Tensor) -> Tensor:
        """Return the estimate of every row's target, as float32."""
        parts = [
            (chunk.double() - self.code_mean) @ self.weight + self.target_mean
            for chunk in torch.split(codes.flatten(1), CHUNK)
        ]
        return torch.cat(parts).float().view(len(codes), *self.target_shape)


@ATTACKS.register("linear")
class LinearAttack(Reconstruction):
    """The linear MMSE estimate of the images, from pairs."""

    name = "linear"
    kind: ClassVar[Kind] = "oracle"
    needs = ("pairs",)
    threat_model = "a server that was given codes with their images by a client"
    cost = "one linear system of min(pairs, code size) unknowns; seconds"

    def __init__(self, *, pairs: Pairs, **options: Any) -> None:
        super().__init__(**options)
        self.pairs = pairs

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the estimate for every code."""
        estimate = fit_linear(self.pairs.codes, self.pairs.images, seed=self.seed)
        if self.pairs.codes[0].numel() < self.pairs.activations[0].numel():
            progress(1, 2)
            self.notes.append(
                f"codes give {self.activation_r2():.3f} of the activations' variance "
                "linearly (held-out pairs)"
            )
        progress(1, 1)
        return estimate(view.codes)

    def activation_r2(self) -> float:
        """Return which share of the activations' variance the codes give linearly."""
        return explained_share(self.pairs.codes, self.pairs.activations, seed=self.seed)


def fit_linear(codes: Tensor, targets: Tensor, *, seed: int = 0) -> LinearEstimate:
    """Return the linear MMSE estimate of ``targets`` (M, …) from ``codes`` (M, …)."""
    fitting, held_out = held_out_split(len(codes), seed=seed)
    moments = _Moments.of(codes[fitting], targets[fitting])
    ridge = min(
        RIDGES,
        key=lambda r: _error(moments.solve(r), codes[held_out], targets[held_out]),
    )
    return _Moments.of(codes, targets).solve(ridge)


def explained_share(codes: Tensor, targets: Tensor, *, seed: int = 0) -> float:
    """Return R² of the linear estimate on a tenth of the pairs kept out of the fit."""
    fitting, held_out = held_out_split(len(codes), seed=seed)
    estimate = fit_linear(codes[fitting], targets[fitting], seed=seed + 1)
    truth = targets[held_out].double()
    variance = (truth - truth.mean(dim=0)).square().mean()
    return 1 - _error(estimate, codes[held_out], truth) / float(variance)


def held_out_split(count: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """Return the rows to fit to, and a tenth of all rows to choose by."""
    if count < 10:
        raise AuditError(f"expected at least 10 pairs of code and image, got {count}")
    rows = torch.from_numpy(numpy_generator(seed, "held out").permutation(count))
    return rows[count // 10 :], rows[: count // 10]


@dataclass(frozen=True, eq=False)
class _Moments:
    """The linear system of the estimate, in the smaller of its two forms.

    system (k, k) = Cov(z̃)         right (k, p) = Cov(z̃, x)    with M pairs >= k
    system (M, M) = Gram of rows   right (M, p) = rows of x    otherwise, then ``back``
    """

    system: Tensor
    right: Tensor
    back: Tensor | None
    code_mean: Tensor
    target_mean: Tensor
    target_shape: tuple[int, ...]

    @classmethod
    def of(cls, codes: Tensor, targets: Tensor) -> "_Moments":
        """Return the system for these pairs."""
        shape = tuple(targets.shape[1:])
        codes, targets = codes.flatten(1), targets.flatten(1)
        means = _mean(codes), _mean(targets)
        if len(codes) < codes.shape[1]:
            rows = codes.double() - means[0]
            right = (targets.double() - means[1]) / len(rows)
            return cls(rows @ rows.T / len(rows), right, rows.T, *means, shape)
        system = codes.new_zeros(codes.shape[1], codes.shape[1], dtype=torch.double)
        right = codes.new_zeros(codes.shape[1], targets.shape[1], dtype=torch.double)
        for some, theirs in zip(
            torch.split(codes, CHUNK), torch.split(targets, CHUNK), strict=True
        ):
            rows = (some.double() - means[0]) / len(codes)
            system.addmm_(rows.T, some.double() - means[0])
            right.addmm_(rows.T, theirs.double() - means[1])
        return cls(system, right, None, *means, shape)

    def solve(self, ridge: float) -> LinearEstimate:
        """Return the estimate with this ridge, relative to the mean variance."""
        size = len(self.code_mean)
        variance = float(self.system.trace()) / size or 1.0
        loaded = self.system.clone()
        loaded.diagonal().add_(ridge * variance)
        weight = torch.cholesky_solve(self.right, torch.linalg.cholesky(loaded))
        if self.back is not None:
            weight = self.back @ weight
        return LinearEstimate(
            weight, self.code_mean, self.target_mean, self.target_shape
        )


def _mean(rows: Tensor) -> Tensor:
    return rows.mean(dim=0, dtype=torch.double)


def _error(estimate: LinearEstimate, codes: Tensor, targets: Tensor) -> float:
    return float((estimate(codes) - targets).square().mean())
