"""A split training step against the plain PyTorch step: ResNet-18 and BERT.

    python -m benchmarks.step

ResNet-18 has batches of 64 images. BERT has the size of MiniLM (6 layers, 384 wide), 32
texts of 64 tokens, a shared mask and the raw codec; it needs transformers.
Same batch, same thread count; each variant has its own model and takes its
turn within one run.
"""

import json
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from benchmarks.timing import interleaved_medians
from lightsplit import Client, ClientSide, Server, ServerSide, make_codec, split
from lightsplit.models import MODELS

BATCH = 64
TEXTS, TOKENS = 32, 64
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
    return {"resnet18": measure_images(rounds), "bert": measure_texts(rounds)}


def measure_texts(rounds: int = 25) -> dict[str, object]:
    """Return the figures of BERT, or why there are none."""
    if find_spec("transformers") is None:
        return {"skipped": "transformers is not installed"}
    mask = torch.arange(TOKENS) < torch.randint(8, TOKENS + 1, (TEXTS, 1))
    batch = {
        "input_ids": torch.randint(30522, (TEXTS, TOKENS)),
        "attention_mask": mask.long(),
    }
    labels = torch.randint(2, (TEXTS,))
    tasks = {"plain": _plain_text(batch, labels), "raw": _split_text(batch, labels)}
    medians = interleaved_medians(tasks, rounds=rounds)
    return {
        "batch_size": TEXTS,
        "tokens": TOKENS,
        "threads": torch.get_num_threads(),
        "rounds": rounds,
        "milliseconds": {k: round(v * 1e3, 2) for k, v in medians.items()},
        "ratio_to_plain": {"raw": round(medians["raw"] / medians["plain"], 4)},
    }


def measure_images(rounds: int = 25) -> dict[str, object]:
    """Return the figures of ResNet-18."""
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


def _bert() -> Any:
    from transformers import BertConfig, BertForSequenceClassification

    return BertForSequenceClassification(
        BertConfig(
            hidden_size=384,
            num_hidden_layers=6,
            num_attention_heads=12,
            intermediate_size=1536,
        )
    ).train()


def _text_loss(output: Any, labels: torch.Tensor) -> torch.Tensor:
    return cross_entropy(output.logits, labels)


def _plain_text(batch: dict[str, torch.Tensor], labels: torch.Tensor) -> Any:
    model = _bert()
    optimizer = ADAM(model.parameters())

    def step() -> None:
        loss = _text_loss(model(**batch), labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        loss.item()

    return step


def _split_text(batch: dict[str, torch.Tensor], labels: torch.Tensor) -> Any:
    parts = split(
        _bert(),
        head_until="bert.encoder.layer.0",
        tail_from="classifier",
        example=batch,
        share=["attention_mask"],
    )
    codec = make_codec("raw", shape=(TOKENS, 384))
    server = Server(ServerSide(parts.backbone, codec, ADAM))
    side = ClientSide(parts.head, parts.tail, codec, ADAM)
    client = Client(side, server.handle, loss=_text_loss)
    return lambda: client.step(batch, labels)


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
