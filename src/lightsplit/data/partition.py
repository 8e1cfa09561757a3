"""The distribution of samples among clients: even at random, or with skewed labels.

The skew is the usual one (Li et al. 2022, arXiv:2102.02079): the samples of each class
go to the clients in proportions drawn from Dirichlet(α). Common code redraws until
every client has enough, which may never happen for a small α. Here the first draw
stands, and clients with too few samples get random samples from the largest ones.
"""

import math
from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.seeding import numpy_generator

MINIMUM = 2  # BatchNorm cannot train on a single sample
LARGEST_ALPHA = 1e100  # shares are almost equal; far above, their sum overflows

Array = np.ndarray[Any, Any]


def partition(
    samples: Sized,
    clients: int,
    *,
    alpha: float | None,
    seed: int,
    minimum: int = MINIMUM,
) -> list[Tensor]:
    """Return the sorted indices of the samples that each client holds.

    Args:
        samples: anything with a length; with ``alpha``, the label of every sample.
        clients: the number of clients.
        alpha: None gives every client a random part of the same size, to within one; a
            smaller α gives each client fewer classes.
        seed: the same seed gives the same parts.
        minimum: the least number of samples of a client.
    """
    _check(len(samples), clients, alpha, minimum)
    generator = numpy_generator(seed, "partition")
    if alpha is None:
        parts = np.array_split(generator.permutation(len(samples)), clients)
    else:
        parts = _skewed(np.asarray(samples), clients, alpha, generator)
        parts = _topped_up(parts, minimum, generator)
    return [torch.from_numpy(np.sort(part).astype(np.int64)) for part in parts]


def label_histogram(labels: Tensor, parts: Sequence[Tensor], classes: int) -> Tensor:
    """Return the number of samples per client and class, (clients, classes)."""
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
    """Move single samples from the largest part to the parts below the minimum."""
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
