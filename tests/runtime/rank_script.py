"""What each process of ``test_ranks`` runs: the same steps on one rank and on all."""

import sys
from pathlib import Path

import torch
from torch import nn

from lightsplit import ServerSide, make_codec
from lightsplit.runtime.ranks import Ranks, joined_ranks, rank_of_this_process, work


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 4))
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.unused = nn.Linear(3, 3)

    def forward(self, batch):
        return self.frozen(self.layers(batch))


def make_side():
    torch.manual_seed(0)
    optimizer = torch.optim.SGD
    codec = make_codec("raw", shape=(6,))
    return ServerSide(Backbone(), codec, lambda p: optimizer(p, lr=0.1))


def gradients(side, compute, rows):
    batch = torch.randn(
        rows, 6, generator=torch.Generator().manual_seed(1)
    ).requires_grad_()
    output = compute(batch)
    side.zero_grad()
    for _ in range(2):  # a backward pass may be repeated
        side.zero_grad()
        batch.grad = None
        torch.autograd.backward(output, torch.ones_like(output), retain_graph=True)
    weights = [p.grad for p in side.modules["backbone"].parameters()]
    return [output.detach(), batch.grad, *weights]


def main():
    side, alone = make_side(), make_side()
    with joined_ranks(side):
        if rank_of_this_process():
            work(side)
            return
        ranks = Ranks(side)
        for rows in (7, 2, 7):  # uneven parts, and fewer rows than ranks
            got = gradients(side, ranks.compute, rows)
            expected = gradients(alone, alone.compute, rows)
            for mine, theirs in zip(got, expected, strict=True):
                assert (mine is None) == (theirs is None)
                if mine is not None:
                    torch.testing.assert_close(mine, theirs)
            side.update()
            alone.update()
        ranks.close()
    Path(sys.argv[1]).write_text("equal")


main()
