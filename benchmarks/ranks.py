"""A joined batch on two ranks against the same batch on one.

    torchrun --standalone --nproc-per-node 2 -m benchmarks.ranks

Each rank has one thread. The backbone is a stack of convolutions with group
normalisation, 128 channels wide; a batch has 256 samples, as of 8 owners with 32 each.
Rounds alternate; the other rank waits while one computes alone. JSON is printed.
"""

import json
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.timing import interleaved_medians
from lightsplit import ServerSide, make_codec
from lightsplit.runtime.ranks import Ranks, joined_ranks, rank_of_this_process, work

SHAPE, ROWS, LAYERS, ROUNDS = (128, 8, 8), 256, 6, 15


def make_side() -> ServerSide:
    """Return the same backbone on every rank."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(LAYERS):
        layers += [nn.Conv2d(128, 128, 3, padding=1), nn.GroupNorm(8, 128), nn.ReLU()]
    codec = make_codec("raw", shape=SHAPE)
    return ServerSide(nn.Sequential(*layers), codec, partial(torch.optim.Adam, lr=1e-3))


def measure(side: ServerSide) -> dict[str, object]:
    """Return the milliseconds of a step by the number of ranks, and their ratio."""
    ranks, alone = Ranks(side), make_side()
    batch = torch.randn(ROWS, *SHAPE, requires_grad=True)

    def step(own: ServerSide, end: Ranks | ServerSide, rows: Tensor) -> None:
        own.zero_grad()
        output = end.compute(rows)
        torch.autograd.backward(output, torch.ones_like(output))
        own.update()

    tasks = {
        "one rank": lambda: step(alone, alone, batch),
        "two ranks": lambda: step(side, ranks, batch),
        "a part alone": lambda: step(alone, alone, batch[: ROWS // 2]),
    }
    found = interleaved_medians(tasks, rounds=ROUNDS)
    ranks.close()
    return {
        "rows": ROWS,
        "weights": sum(p.numel() for p in side.modules.parameters()),
        "milliseconds": {name: round(1e3 * v, 1) for name, v in found.items()},
        "steps of two ranks / of one": round(found["one rank"] / found["two ranks"], 3),
        "overhead of rank 0": round(found["two ranks"] / found["a part alone"] - 1, 3),
    }


def main() -> None:
    """Measure on rank 0 and print; compute on the others."""
    torch.set_num_threads(1)
    side = make_side()
    with joined_ranks(side):
        if rank_of_this_process():
            work(side)
        else:
            print(json.dumps(measure(side), indent=2))


if __name__ == "__main__":
    main()
