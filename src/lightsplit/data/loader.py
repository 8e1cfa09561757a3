"""Batches of the user's own DataLoader, by the number of the step."""

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightsplit.data.batches import Batch, StepBatches
from lightsplit.errors import ConfigError, DataError
from lightsplit.seeding import derive


class LoaderBatches(StepBatches):
    """Batches of the user's own DataLoader, or of any sized iterable of (x, y).

    The loader draws from generators seeded for the epoch (torch's, NumPy's and Python's
    global ones, and its own ``generator`` if it has one); between its batches the
    global generators are as if the loader had drawn nothing. To reach a later step, the
    batches before it are skipped; to reach an earlier step, its epoch starts again.
    """

    def __init__(self, loader: Iterable[Any], *, seed: int, client: int) -> None:
        try:
            self.steps_per_epoch = len(loader)  # type: ignore[arg-type]
        except TypeError:
            raise ConfigError(
                f"the loader of client {client} must have a length, but "
                f"{type(loader).__name__} has none"
            ) from None
        if self.steps_per_epoch < 1:
            raise ConfigError(f"the loader of client {client} has no batches")
        self.loader = loader
        self._client = client
        self._seed = seed
        self._epoch: int | None = None
        self._next_position = 0
        self._iterator: Iterator[Any] = iter(())
        self._randomness = _Randomness(derive(seed))

    def _batch(self, epoch: int, position: int) -> Batch:
        if epoch != self._epoch or position < self._next_position:
            self._start(epoch)
        while self._next_position < position:
            self._next()
        return _pair(self._next())

    def _start(self, epoch: int) -> None:
        self._epoch, self._next_position = None, 0
        seed = derive(self._seed, "order", self._client, epoch)
        self._randomness = _Randomness(seed)
        with self._randomness.in_use():
            for generator in _own_generators(self.loader):
                generator.manual_seed(seed)
            self._iterator = iter(self.loader)
        self._epoch = epoch

    def _next(self) -> Any:
        # After a failure the iteration starts again; it is not continued.
        epoch, self._epoch = self._epoch, None
        try:
            with self._randomness.in_use():
                batch = next(self._iterator)
        except StopIteration:
            raise DataError(
                f"the loader of client {self._client} promised "
                f"{self.steps_per_epoch} batches, got {self._next_position}"
            ) from None
        self._epoch = epoch
        self._next_position += 1
        return batch


class _Randomness:
    """The states of the global generators on the CPU, kept between uses.

    They are swapped in around each use. A single ``with`` around the whole iteration
    would stay open between two batches and govern the training.
    """

    def __init__(self, seed: int) -> None:
        self._states = (
            torch.Generator().manual_seed(seed).get_state(),
            np.random.RandomState(seed % 2**32).get_state(),
            random.Random(seed).getstate(),  # noqa: S311 (shuffling, not secrecy)
        )

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Run the block with these states, then restore the outer ones."""
        outside = _global_states()
        _set_global_states(self._states)
        try:
            yield
        finally:
            self._states = _global_states()
            _set_global_states(outside)


def _global_states() -> tuple[Tensor, Any, Any]:
    return torch.get_rng_state(), np.random.get_state(), random.getstate()


def _set_global_states(states: tuple[Tensor, Any, Any]) -> None:
    torch.set_rng_state(states[0])
    np.random.set_state(states[1])
    random.setstate(states[2])


def _own_generators(loader: object) -> list[torch.Generator]:
    batch_sampler = getattr(loader, "batch_sampler", None)
    holders = (
        loader,
        getattr(loader, "sampler", None),
        getattr(batch_sampler, "sampler", None),
    )
    found = (getattr(holder, "generator", None) for holder in holders)
    return [one for one in found if isinstance(one, torch.Generator)]


def _pair(batch: Any) -> Batch:
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise DataError(
            f"a loader must yield pairs (x, y), got {type(batch).__name__}"
            + (f" of {len(batch)}" if isinstance(batch, tuple | list) else "")
        )
    return batch[0], batch[1]
