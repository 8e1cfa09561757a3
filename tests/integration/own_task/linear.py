"""Digits with a server whose part is one linear layer, or has a ReLU."""

import torch
from torch import nn
from torchmetrics.classification import MulticlassAccuracy

from lightsplit.tasks import TASKS, Task


def task(bends: bool = False) -> Task:
    """Return the digits."""
    middle = [nn.Linear(12, 8), nn.ReLU()] if bends else [nn.Linear(12, 8)]
    end = nn.Sequential(nn.ReLU(), nn.Linear(8, 10))
    start = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Tanh())
    return Task(
        model=lambda: nn.Sequential(start, nn.Sequential(*middle), end),
        example=lambda: (torch.rand(2, 1, 8, 8), torch.zeros(2).long()),
        data=TASKS.create("digits").data,
        head_until="0",
        tail_from="2",
        classes=10,
        metrics={"accuracy": MulticlassAccuracy(10, average="micro")},
        monitor="accuracy",
    )
