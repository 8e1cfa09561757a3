"""Who holds which samples: evenly at random, or with skewed labels.

The skew is the usual one (Li et al. 2022, arXiv:2102.02079): the samples of each class
go to the clients in proportions drawn from Dirichlet(α). Common code redraws until
every client has enough, which for a small α may never end. Here the draw stands, and
clients that came out short get random samples of those that hold the most.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.seeding import numpy_generator

MINIMUM = 2  # BatchNorm cannot train on a single sample
LARGEST_ALPHA = 1e100  # shares are all but equal; far above, their sum overflows

Array = np.ndarray[Any, Any]


def partition(
    labels: Tensor,
    clients: int,
    *,
    alpha: float | None,
    seed: int,
    minimum: int = MINIMUM,
) -> list[Tensor]:
    """Return for each client the indices, in order, of the samples that it holds.

    Args:
        labels: one label per sample.
        clients: how many hold the data.
        alpha: None gives everyone a random part of the same size, to within one;
            else the smaller α, the fewer classes a client has.
        seed: the same seed gives the same parts.
        minimum: how many samples every client has at least.
    """
    _check(len(labels), clients, alpha, minimum)
    generator = numpy_generator(seed, "partition")
    if alpha is None:
        parts = np.array_split(generator.permutation(len(labels)), clients)
    else:
        parts = _skewed(labels.cpu().numpy(), clients, alpha, generator)
        parts = _topped_up(parts, minimum, generator)
    return [torch.from_numpy(np.sort(part).astype(np.int64)) for part in parts]


def label_histogram(labels: Tensor, parts: Sequence[Tensor], classes: int) -> Tensor:
    """Return how many samples of each class each client holds, (clients, classes)."""
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise ConfigError(
            f"labels must lie between 0 and {classes - 1}, "
            f"got {int(labels.min())} to {int(labels.max())}"
        )
    return torch.stack([torch.bincount(labels[p], minlength=classes) for p in parts])


def _check(samples: int, clients: int, alpha: float | None, minimum: int) -> None:
    if clients < 1:
        raise ConfigError(f"clients must be at least 1, got {clients}")
    if minimum < 1:
        raise ConfigError(f"minimum must be at least 1, got {minimum}")
    if samples < clients * minimum:
        raise ConfigError(
            f"{clients} clients with at least {minimum} samples each need "
            f"{clients * minimum} samples, got {samples}"
        )
    if alpha is not None and not (math.isfinite(alpha) and alpha > 0):
        raise ConfigError(f"alpha must be a positive number or None, got {alpha}")


def _skewed(
    labels: Array, clients: int, alpha: float, generator: np.random.Generator
) -> list[Array]:
    pieces: list[list[Array]] = [[] for _ in range(clients)]
    for label in np.unique(labels):
        members = generator.permutation(np.flatnonzero(labels == label))
        shares = generator.dirichlet(np.full(clients, min(alpha, LARGEST_ALPHA)))
        cuts = np.rint(np.cumsum(shares)[:-1] * len(members)).astype(np.int64)
        for held, piece in zip(pieces, np.split(members, cuts), strict=True):
            held.append(piece)
    return [np.concatenate(held) for held in pieces]


def _topped_up(
    parts: list[Array], minimum: int, generator: np.random.Generator
) -> list[Array]:
    """Move samples, one at a time, from the largest part to those below the minimum."""
    held = [part.tolist() for part in parts]
    sizes = np.array([len(part) for part in held])
    for client in np.flatnonzero(sizes < minimum):
        while sizes[client] < minimum:
            donor = int(np.argmax(sizes))
            chosen = held[donor].pop(int(generator.integers(sizes[donor])))
            held[client].append(chosen)
            sizes[donor] -= 1
            sizes[client] += 1
    return [np.array(part, np.int64) for part in held]
