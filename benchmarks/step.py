"""A split training step against the plain PyTorch step: ResNet-18, batch 64.

    python -m benchmarks.step

Same batch, same thread count; each variant has its own model and takes its
turn within one run.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from benchmarks.timing import interleaved_medians
from lightsplit import Client, ClientSide, Server, ServerSide, make_codec
from lightsplit.models import MODELS

BATCH = 64
SHAPE = (64, 8, 8)
ADAM = partial(torch.optim.Adam, lr=1e-3)
VARIANTS: dict[str, dict[str, Any]] = {
    "raw": {"name": "raw"},
    "lightsplit-f 8x dct": {"name": "lightsplit-f", "ratio": 8, "projection": "dct"},
    "lightsplit-f 8x haar": {"name": "lightsplit-f", "ratio": 8, "projection": "haar"},
    "lightsplit-l 8x dct": {
        "name": "lightsplit-l",
        "ratio": 8,
        "projection": "dct",
        "hidden": 512,
    },
}


def measure(rounds: int = 25) -> dict[str, object]:
    """Return milliseconds per step and each variant's ratio to the plain step."""
    images, labels = torch.rand(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))
    tasks = {"plain": _plain(images, labels)}
    for title, options in VARIANTS.items():
        tasks[title] = _split(images, labels, dict(options))
    medians = interleaved_medians(tasks, rounds=rounds)
    return {
        "model": "resnet18 l2",
        "batch_size": BATCH,
        "threads": torch.get_num_threads(),
        "rounds": rounds,
        "milliseconds": {k: round(v * 1e3, 2) for k, v in medians.items()},
        "ratio_to_plain": {
            k: round(v / medians["plain"], 4)
            for k, v in medians.items()
            if k != "plain"
        },
    }


def _plain(images: torch.Tensor, labels: torch.Tensor) -> Callable[[], object]:
    model = MODELS.create("resnet18", cut="l2").module.train()
    optimizer = ADAM(model.parameters())

    def step() -> None:
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        loss.item()

    return step


def _split(
    images: torch.Tensor, labels: torch.Tensor, options: dict[str, Any]
) -> Callable[[], object]:
    parts = MODELS.create("resnet18", cut="l2").split()
    codec = make_codec(str(options.pop("name")), shape=SHAPE, **options)
    server = Server(ServerSide(parts.backbone, codec, ADAM))
    client = Client(ClientSide(parts.head, parts.tail, codec, ADAM), server.handle)
    return lambda: client.step(images, labels)


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
