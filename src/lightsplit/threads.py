"""How many threads torch computes with, for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Run the block with ``count`` threads; then with as many as before.

    Nets that are small gain nothing by several. On a machine that is busy otherwise
    they lose: threads that wait for each other spin, and a minute becomes ten.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
