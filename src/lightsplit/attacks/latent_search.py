"""Searches for the latents whose images have the observed codes.

    latent ──prior──► image ──client──► code      cost: distance to the observed code
                                                        + WEIGHT · mean square of latent

By gradients where codes are continuous, and without them where they are bits: the sign
of a number has no useful slope. Both begin at latents of known images with near codes.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lightsplit.attacks.image_descent import code_error
from lightsplit.extras import require
from lightsplit.seeding import derive

WEIGHT = 1e-3
RATE = 0.1
WORKERS = 10  # latents that one search tries at a time
CHUNK = 2048  # images coded together
ALGORITHM = "DE"  # differential evolution; see nevergrad's registry

Coded = Callable[[Tensor], Tensor]  # latents to codes


def costs(coded: Coded, latents: Tensor, codes: Tensor) -> Tensor:
    """Return the cost of every latent (N,)."""
    return code_error(coded(latents), codes) + WEIGHT * latents.square().mean(dim=1)


def by_gradient(coded: Coded, codes: Tensor, starts: Tensor, steps: int) -> Tensor:
    """Return the best latent of every code (N, L), from all its starts (S, N, L)."""
    best, lowest = starts[0], torch.full((len(codes),), torch.inf).to(codes)
    for start in starts:
        latents = _descended(coded, codes, start, steps)
        with torch.no_grad():
            cost = costs(coded, latents, codes)
        better = cost < lowest
        best = torch.where(better[:, None], latents, best)
        lowest = torch.minimum(cost, lowest)
    return best


def without_gradient(
    coded: Coded,
    codes: Tensor,
    starts: Tensor,
    trials: int,
    *,
    seed: int,
) -> Tensor:
    """Return the best latent of every code (N, L) that so many trials find."""
    searches = [
        _Search(starts[:, row], trials, derive(seed, "search", row))
        for row in range(len(codes))
    ]
    wanted = codes.repeat_interleave(WORKERS, dim=0)
    for _ in range(-(-trials // WORKERS)):
        asked = torch.cat([search.ask() for search in searches]).to(codes)
        chunks = zip(torch.split(asked, CHUNK), torch.split(wanted, CHUNK), strict=True)
        found = torch.cat([costs(coded, some, goal) for some, goal in chunks])
        cost = found.cpu().view(len(codes), WORKERS)
        for search, own in zip(searches, cost, strict=True):
            search.tell(own)
    return torch.stack([search.best for search in searches]).to(codes)


def _descended(coded: Coded, codes: Tensor, start: Tensor, steps: int) -> Tensor:
    latents = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([latents], lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        cost = costs(coded, latents, codes).sum()
        (latents.grad,) = torch.autograd.grad(cost, [latents])
        optimizer.step()
        schedule.step()
    return latents.detach()


class _Search:
    """The search for one code, by nevergrad, which remembers the best latent."""

    def __init__(self, starts: Tensor, trials: int, seed: int) -> None:
        nevergrad = require("nevergrad", extra="prior", purpose="a search for bits")
        space = nevergrad.p.Array(init=starts[0].cpu().double().numpy())
        space.random_state.seed(seed % 2**32)
        self._optimizer = nevergrad.optimizers.registry[ALGORITHM](
            parametrization=space, budget=trials + WORKERS, num_workers=WORKERS
        )
        for start in starts.cpu().double().numpy():
            self._optimizer.suggest(start)
        self._asked: list[Any] = []
        self._lowest = float("inf")
        self.best = starts[0].cpu()

    def ask(self) -> Tensor:
        """Return the next latents to try (WORKERS, L)."""
        self._asked = [self._optimizer.ask() for _ in range(WORKERS)]
        return torch.stack([torch.from_numpy(one.value).float() for one in self._asked])

    def tell(self, cost: Tensor) -> None:
        """Learn from the costs of the latents asked for."""
        for one, value in zip(self._asked, cost.tolist(), strict=True):
            self._optimizer.tell(one, value)
            if value < self._lowest:
                self._lowest = value
                self.best = torch.from_numpy(one.value).float()
