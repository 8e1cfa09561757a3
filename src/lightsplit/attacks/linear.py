"""Linear MMSE: the best linear guess of an image from its code.

    x̂ = E[x] + Cov(x, z̃) (Cov(z̃) + r·I)⁻¹ (z̃ − E[z̃])

Means and covariances come from pairs of known images and their codes. The ridge ``r``,
relative to the mean variance of a code's value, is the candidate that does best on a
tenth of the pairs, which the fit has not seen. The estimate is then fitted to all.

What may surprise: the projection R does not occur. The covariances are estimated from
pairs and contain R already, so knowing it adds nothing. Lifting back with R is a far
weaker inverse: it explains k/d of an activation where this estimate explains most.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from lightsplit.attacks.base import ATTACKS, Kind, Progress, at_least, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.knowledge import Pairs
from lightsplit.attacks.view import ServerView
from lightsplit.errors import AuditError
from lightsplit.part_facts import PartFacts
from lightsplit.seeding import numpy_generator

RIDGES = (1e-8, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
FOLDS = 4
CHUNK = 2048  # rows in float64 at a time


@dataclass(frozen=True, eq=False)
class LinearEstimate:
    """A linear map from codes to targets, with the means of both, in float64."""

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
class LinearAttack(Reconstructs):
    """The linear MMSE estimate of the images, from pairs.

    Attributes:
        ridge: relative to the mean variance of a code's value; by default the best of
            RIDGES on held-out pairs.
    """

    name = "linear"
    kind: ClassVar[Kind] = "oracle"
    runs_by_default = True
    truths = ("image", "table")
    needs = ("pairs",)
    threat_model = "a server that was given codes with their samples by a client"
    cost = "one linear system of min(pairs, code size) unknowns; seconds"
    facts = PartFacts(
        source="LightSplit",
        assumes="true codes of samples of the same kind",
        status="ours",
    )

    def __init__(
        self, *, pairs: Pairs, ridge: float | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 0, ridge=ridge)
        self.pairs = pairs
        self.ridge = ridge

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the estimate for every code."""
        estimate = fit_linear(
            self.pairs.codes, self.pairs.images, seed=self.seed, ridge=self.ridge
        )
        if self.pairs.codes[0].numel() < self.pairs.activations[0].numel():
            progress(1, 2)
            self.notes.append(
                f"codes explain {self.activation_r2():.3f} of the activations' "
                "variance linearly (held-out pairs)"
            )
        progress(1, 1)
        return estimate(view.codes)

    def activation_r2(self) -> float:
        """Return the share of the activations' variance that codes explain linearly."""
        return explained_share(self.pairs.codes, self.pairs.activations, seed=self.seed)


def fit_linear(
    codes: Tensor, targets: Tensor, *, seed: int = 0, ridge: float | None = None
) -> LinearEstimate:
    """Return the linear MMSE estimate of ``targets`` (M, …) from ``codes`` (M, …).

    Without a ridge it takes the one that does best on a tenth of the pairs.
    """
    if ridge is None:
        ridge = _best_ridge(codes, targets, seed=seed)
    return _Moments.of(codes, targets).solve(ridge)


class CrossFit(NamedTuple):
    """Estimates of which none was fitted to the rows of its own fold.

    Attributes:
        estimates: one for each fold, fitted to the rows of all other folds.
        folds: the fold of each row (M,).
    """

    estimates: tuple[LinearEstimate, ...]
    folds: Tensor


def cross_fit(codes: Tensor, targets: Tensor, *, seed: int = 0) -> CrossFit:
    """Return linear estimates that can be shown to a learner with the same rows.

    An estimate explains the rows that it was fitted to better than any other rows. A
    network that learns from such rows trusts the estimate too much.
    """
    order = numpy_generator(seed, "folds").permutation(len(codes))
    folds = torch.from_numpy(order % FOLDS).to(codes.device)
    systems = _Moments.leaving_out(codes, targets, folds)
    unseen = codes[folds == 0], targets[folds == 0]
    ridge = min(RIDGES, key=lambda r: _error(systems[0].solve(r), *unseen))
    return CrossFit(tuple(system.solve(ridge) for system in systems), folds)


def explained_share(codes: Tensor, targets: Tensor, *, seed: int = 0) -> float:
    """Return R² of the linear estimate on a tenth of the pairs, kept out of the fit.

    It is 0 where those do not vary: of fewer than 20 pairs only one is kept out.
    """
    fitting, held_out = held_out_split(len(codes), seed=seed)
    estimate = fit_linear(codes[fitting], targets[fitting], seed=seed + 1)
    truth = targets[held_out].double()
    variance = float((truth - truth.mean(dim=0)).square().mean())
    if not variance:
        return 0.0
    return 1 - _error(estimate, codes[held_out], truth) / variance


def _best_ridge(codes: Tensor, targets: Tensor, *, seed: int) -> float:
    fitting, held_out = held_out_split(len(codes), seed=seed)
    moments = _Moments.of(codes[fitting], targets[fitting])
    return min(
        RIDGES,
        key=lambda r: _error(moments.solve(r), codes[held_out], targets[held_out]),
    )


def held_out_split(count: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """Return the rows to fit to, and a tenth of all rows to choose the ridge by."""
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
        system, right = _products(codes, targets, means)
        return cls(system / len(codes), right / len(codes), None, *means, shape)

    @classmethod
    def leaving_out(
        cls, codes: Tensor, targets: Tensor, folds: Tensor
    ) -> list["_Moments"]:
        """Return the system of all pairs but those of a fold, for each fold."""
        every = range(FOLDS)
        if len(codes) < codes[0].numel():
            return [cls.of(codes[folds != f], targets[folds != f]) for f in every]
        shape = tuple(targets.shape[1:])
        codes, targets = codes.flatten(1), targets.flatten(1)
        means = _mean(codes), _mean(targets)
        parts = [
            _products(codes[folds == f], targets[folds == f], means) for f in every
        ]
        system, right = (
            torch.stack(each).sum(dim=0) for each in zip(*parts, strict=True)
        )
        found = []
        for fold, (own_system, own_right) in enumerate(parts):
            kept = folds != fold
            count = int(kept.sum())
            others = _mean(codes[kept]), _mean(targets[kept])
            shift, moved = others[0] - means[0], others[1] - means[1]
            found.append(
                cls(
                    (system - own_system) / count - torch.outer(shift, shift),
                    (right - own_right) / count - torch.outer(shift, moved),
                    None,
                    *others,
                    shape,
                )
            )
        return found

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


def _products(
    codes: Tensor, targets: Tensor, means: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the sums of products of centred codes with codes and with targets."""
    system = codes.new_zeros(codes.shape[1], codes.shape[1], dtype=torch.double)
    right = codes.new_zeros(codes.shape[1], targets.shape[1], dtype=torch.double)
    for some, theirs in zip(
        torch.split(codes, CHUNK), torch.split(targets, CHUNK), strict=True
    ):
        rows = some.double() - means[0]
        system.addmm_(rows.T, rows)
        right.addmm_(rows.T, theirs.double() - means[1])
    return system, right


def _mean(rows: Tensor) -> Tensor:
    return rows.mean(dim=0, dtype=torch.double)


def _error(estimate: LinearEstimate, codes: Tensor, targets: Tensor) -> float:
    return float((estimate(codes) - targets).square().mean())
