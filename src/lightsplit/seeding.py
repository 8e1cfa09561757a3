"""The source of all randomness.

Every draw derives its own seed from the run's seed and from names that say what it is
for, such as (client, step). So neither the order of events nor an interruption nor the
number of processes can change the numbers that are drawn.
"""

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import torch
from torch import Tensor

_MIXED_STATES = 9  # must be odd


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


def scope(seed: int, *names: int | str) -> AbstractContextManager[None]:
    """Run the block with torch's generators seeded for ``names``, then restore them."""
    return _seeded(derive(seed, *names))


def wide_scope(seed: int, *names: int | str) -> AbstractContextManager[None]:
    """Do the same as ``scope`` with a seed that cannot be found by brute force.

    Torch's CPU generator uses 32 bits of a seed. Here its whole state depends on nine
    such seeds, 288 bits. CUDA's generators use all bits of a seed.
    """
    drawn = hashlib.sha512(repr(("wide", int(seed), *names)).encode()).digest()
    return _seeded(derive(seed, *names), _mixed_state(drawn))


@contextmanager
def _seeded(number: int, state: Tensor | None = None) -> Iterator[None]:
    """Seed torch's generators with a number; on the CPU with a whole state, if given.

    torch.random.fork_rng and torch.manual_seed do the same, but they look for devices
    of every kind each time, and the second queues a stack trace for each kind that is
    not there: 0.5 ms, and memory that is never freed.
    """
    own = torch.default_generator.get_state()
    on_device = torch.cuda.get_rng_state() if torch.cuda.is_available() else None
    try:
        if state is None:
            torch.default_generator.manual_seed(number)
        else:
            torch.default_generator.set_state(state)
        if on_device is not None:
            torch.cuda.manual_seed(number)
        yield
    finally:
        torch.default_generator.set_state(own)
        if on_device is not None:
            torch.cuda.set_rng_state(on_device)


def _mixed_state(drawn: bytes) -> Tensor:
    """Return the exclusive or of the states of an odd number of fresh generators.

    Fields that are equal in every fresh state keep their value; the rest are the words
    of the Mersenne Twister, which may have any value.
    """
    generator = torch.Generator()
    mixed = torch.zeros_like(generator.get_state())
    for start in range(0, 4 * _MIXED_STATES, 4):
        word = int.from_bytes(drawn[start : start + 4], "little")
        mixed.bitwise_xor_(generator.manual_seed(word).get_state())
    return mixed
