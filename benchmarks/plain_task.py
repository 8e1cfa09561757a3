"""A task's network in one piece, in a plain PyTorch loop: what splitting is held to.

    python -m benchmarks.plain_task TASK FOLDER [--steps 200] [--lr 2e-3] [--seed 0]

TASK is a file as for ``lightsplit train --task``; FOLDER has an owner's data. The loop
is AdamW on shuffled batches of 16, one thread. The task's metrics are printed as JSON.
"""

import argparse
import json
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from lightsplit.splitting import call
from lightsplit.tasks import Task, make_task

BATCH, TEST_BATCH = 16, 32


def train(task: Task, data: Any, steps: int, lr: float) -> nn.Module:
    """Return the network after so many steps."""
    model = task.model().train()
    trainable = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=lr)
    batches = chain.from_iterable(repeat(DataLoader(data, BATCH, shuffle=True)))
    for _, (inputs, labels) in zip(range(steps), batches, strict=False):
        task.loss(call(model, inputs), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
    return model


def measured(task: Task, model: nn.Module, data: Any) -> dict[str, float]:
    """Return the task's metrics on a test set."""
    metrics = task.make_metrics()
    model.eval()
    with torch.no_grad():
        for inputs, labels in DataLoader(data, TEST_BATCH):
            output = call(model, inputs)
            for metric in metrics.values():
                metric.update(output, labels)
    return {name: float(metric.compute()) for name, metric in metrics.items()}


def main() -> None:
    """Train, measure and print."""
    parser = argparse.ArgumentParser(description="A task's network without a cut.")
    parser.add_argument("task")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(asked.seed)
    task = make_task(asked.task, {})
    if task.data is None:
        parser.error(f"{asked.task} has no data function")
    training, test = task.data(asked.folder)
    model = train(task, training, asked.steps, asked.lr)
    given = {"steps": asked.steps, "lr": asked.lr, "seed": asked.seed}
    print(json.dumps({**given, **measured(task, model, test)}))


if __name__ == "__main__":
    main()
