"""Digits as sixteen tokens, for a network that treats all tokens alike, or does not."""

import torch
from torch import nn
from torchmetrics.classification import MulticlassAccuracy

from lightsplit.tasks import TASKS, Task


class Tokens(nn.Module):
    """A tiny transformer; positions are added before the cut, or behind it."""

    def __init__(self, positions, pools):
        super().__init__()
        self.positions = positions
        self.patches = nn.Linear(4, 8)
        self.start = nn.Identity()
        self.place = nn.Parameter(torch.zeros(16, 8))
        self.block = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        self.pools = pools
        self.end = nn.Linear(8, 10)

    def forward(self, images):
        patches = images.unfold(2, 2, 2).unfold(3, 2, 2).flatten(1, 3).flatten(2)
        tokens = self.patches(patches)
        if self.positions == "head":
            tokens = tokens + self.place
        tokens = self.start(tokens)
        if self.positions == "server":
            tokens = tokens + self.place
        tokens = self.block(tokens)
        if self.pools:
            return self.end(tokens.mean(1))
        return self.end(tokens).mean(1)


def task(positions: str = "head", pools: bool = False) -> Task:
    """Return the digits as tokens."""
    return Task(
        model=lambda: Tokens(positions, pools),
        example=lambda: (torch.rand(2, 1, 8, 8), torch.zeros(2).long()),
        data=TASKS.create("digits").data,
        head_until="start",
        tail_from="end",
        classes=10,
        metrics={"accuracy": MulticlassAccuracy(10, average="micro")},
        monitor="accuracy",
    )
