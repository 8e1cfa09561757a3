"""Where all randomness comes from.

A run has one seed. Every draw in it derives its own seed from that one and from the
names of what it is for, such as (client, step), so that the order in which things
happen, an interruption or the number of processes cannot change what is drawn.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def scope(seed: int, *names: int | str) -> Iterator[None]:
    """Run the block with torch's generators seeded for ``names``; then restore them."""
    drawn = derive(seed, *names)
    if _has_cuda():
        with torch.random.fork_rng([torch.cuda.current_device()]):
            torch.manual_seed(drawn)
            yield
        return
    # torch.manual_seed looks for every kind of device; three times a step that is felt.
    generator = torch.default_generator
    before = generator.get_state()
    generator.manual_seed(drawn)
    try:
        yield
    finally:
        generator.set_state(before)
