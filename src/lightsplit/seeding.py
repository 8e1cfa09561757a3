"""Where all randomness comes from.

A run has one seed. Every draw in it derives its own seed from that one and from the
names of what it is for, such as (client, step), so that the order in which things
happen, an interruption or the number of processes cannot change what is drawn.
"""

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache

import numpy as np
import torch


def derive(seed: int, *names: int | str) -> int:
    """Return a 63-bit seed that depends on ``seed`` and on every name, in order.

    Example:
        >>> derive(0, "client", 3) == derive(0, "client", 3)
        True
        >>> derive(0, "client", 3) == derive(0, "client", 4)
        False
    """
    text = repr((int(seed), *names)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little") >> 1


def numpy_generator(seed: int, *names: int | str) -> np.random.Generator:
    """Return a Philox generator, which draws the same integers on every machine."""
    return np.random.Generator(np.random.Philox(derive(seed, *names)))


@cache
def _has_cuda() -> bool:
    return torch.cuda.is_available()


def scope(seed: int, *names: int | str) -> AbstractContextManager[None]:
    """Run the block with torch's generators seeded for ``names``; then restore them."""
    drawn = derive(seed, *names)
    return _every_generator(drawn) if _has_cuda() else _ProcessorsGenerator(drawn)


class _ProcessorsGenerator:
    """As ``_every_generator`` where there is but one.

    ``torch.manual_seed`` looks for every kind of device, and a generator function is
    slow to enter; three times a step both are felt.
    """

    __slots__ = ("_before", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __enter__(self) -> None:
        self._before = torch.default_generator.get_state()
        torch.default_generator.manual_seed(self._seed)

    def __exit__(self, *_: object) -> None:
        torch.default_generator.set_state(self._before)


@contextmanager
def _every_generator(seed: int) -> Iterator[None]:
    with torch.random.fork_rng([torch.cuda.current_device()]):
        torch.manual_seed(seed)
        yield
