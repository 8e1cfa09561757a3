"""How much quicker the structured projection is than the matrix, in the same run.

    project then lift, batch 64, two threads:  haar (d × k matrix)  against  dct

Rounds of the two alternate. Times are medians over the rounds, ``ratio`` is the one of
the medians. The structured one is many short steps that two threads must end together,
so a busy machine slows it more than the one long product: ``ratio_of_best`` compares
the quickest rounds, which a neighbour disturbs least.
"""

import json
import statistics
import time

import torch

from lightsplit.codecs.projections import PROJECTIONS, Projection
from lightsplit.threads import torch_threads

SIZES = ((16384, 2048), (4096, 512))  # (d, k); the second is ResNet-18 at 8×
BATCH = 64
ROUNDS = 25


def measure() -> dict[str, dict[str, float]]:
    """Return milliseconds, bytes and the ratio haar / dct for each size."""
    with torch_threads(2), torch.no_grad():
        return {
            f"{size}x{code_size}": _compare(size, code_size)
            for size, code_size in SIZES
        }


def _compare(size: int, code_size: int) -> dict[str, float]:
    dense, structured = (
        PROJECTIONS.create(name, size=size, code_size=code_size, seed=0)
        for name in ("haar", "dct")
    )
    activation = torch.randn(BATCH, size)
    times = [
        (_milliseconds(dense, activation), _milliseconds(structured, activation))
        for _ in range(ROUNDS + 2)
    ][2:]  # the first two warm the caches up
    dense_times, structured_times = zip(*times, strict=True)
    dense_ms = statistics.median(dense_times)
    structured_ms = statistics.median(structured_times)
    return {
        "haar_ms": round(dense_ms, 3),
        "dct_ms": round(structured_ms, 3),
        "ratio": round(dense_ms / structured_ms, 2),
        "ratio_of_best": round(min(dense_times) / min(structured_times), 2),
        "haar_bytes": _held_bytes(dense),
        "dct_bytes": _held_bytes(structured),
    }


def _milliseconds(projection: Projection, activation: torch.Tensor) -> float:
    start = time.perf_counter()
    projection.lift(projection.project(activation))
    return 1000 * (time.perf_counter() - start)


def _held_bytes(projection: Projection) -> int:
    """Return the bytes of everything that the projection keeps."""
    return sum(buffer.nbytes for buffer in projection.buffers())


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
