"""A limit on torch's threads for a block of code."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Run the block with ``count`` threads, then restore the number.

    Small networks gain nothing from several threads. On a busy machine they lose:
    waiting threads spin, and a minute becomes ten.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
