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


@contextmanager
def scope(seed: int, *names: int | str) -> Iterator[None]:
    """Run the block with torch's generators seeded for ``names``, then restore them."""
    drawn = derive(seed, *names)
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        # torch.manual_seed would do both, but it also queues a stack trace for every
        # kind of device that is not there: 0.5 ms, and memory that is never freed.
        torch.default_generator.manual_seed(drawn)
        if devices:
            torch.cuda.manual_seed(drawn)
        yield


def wide_scope(seed: int, *names: int | str) -> AbstractContextManager[None]:
    """Do the same as ``scope`` with a seed that cannot be found by brute force.

    Torch's CPU generator uses 32 bits of a seed. Here its whole state depends on nine
    such seeds, 288 bits.
    """
    drawn = hashlib.sha512(repr(("wide", int(seed), *names)).encode()).digest()
    return _wide(drawn, derive(seed, *names))


@contextmanager
def _wide(drawn: bytes, narrow: int) -> Iterator[None]:
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        if devices:
            torch.cuda.manual_seed(narrow)  # CUDA generators use all bits of it
        torch.set_rng_state(_mixed_state(drawn))
        yield


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
