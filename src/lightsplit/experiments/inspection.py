"""The other direction: a server that hijacks, clients that look at what it sends."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lightsplit.backdoors import INSPECTORS, FeatureSpaceHijacker, Inspector
from lightsplit.codecs import Code
from lightsplit.data import Dataset
from lightsplit.errors import ConfigError
from lightsplit.experiments.config import FACTS, Experiment
from lightsplit.metrics import mean_squared_error, structural_similarity
from lightsplit.runtime import Client, ClientSide, Server

SHOWN = 64  # private images that the hijacker is tried on


def make_inspector(
    experiment: Experiment, side: ClientSide, client: int = 0
) -> Inspector | None:
    """Return what looks at the gradients that a client gets, if anything does."""
    if not experiment.inspector:
        return None
    if experiment.inspector == "scrutinizer" and experiment.codec == "lightsplit-l":
        raise ConfigError(
            "the scrutinizer takes an honest server with lightsplit-l for a hijacker: "
            "use splitguard, or another codec"
        )
    options = {
        "splitguard": {
            "head": side.modules["head"],
            "classes": FACTS[experiment.dataset][1],
            "seed": experiment.seed,
            "client": client,
        }
    }
    return INSPECTORS.create(
        experiment.inspector, **options.get(experiment.inspector, {})
    )


def make_hijacker(
    experiment: Experiment, server: Server, dataset: Dataset
) -> FeatureSpaceHijacker | None:
    """Return a server that hijacks, with the test images as its public ones."""
    if not experiment.hijack:
        return None
    if set(experiment.format.split(",")) != {"fp32"}:
        raise ConfigError(f"a hijacker writes fp32 only, got {experiment.format!r}")

    def forward(code: Code) -> Code:
        server.side.set_training(False)
        return server.side.forward(code)

    public, _ = dataset.test.batch(torch.arange(len(dataset.test)))
    return FeatureSpaceHijacker(
        public, server.side.codec, forward=forward, seed=experiment.seed
    )


def inspection_record(clients: Sequence[Client]) -> dict[str, Any] | None:
    """Return what the clients noticed, in words of record.json."""
    inspectors = [c.inspector for c in clients if isinstance(c.inspector, Inspector)]
    if not inspectors:
        return None
    return {
        "inspector": inspectors[0].name,
        "scores": [inspector.score for inspector in inspectors],
        "alarmed_at": [inspector.alarmed_at for inspector in inspectors],
    }


def hijack_record(
    hijacker: FeatureSpaceHijacker | None, client: Client, images: Tensor
) -> dict[str, Any] | None:
    """Return how well private images were read, and how well the mean image does."""
    if hijacker is None:
        return None
    client.side.set_training(False)
    with torch.no_grad():
        codes = client.side.encode(images.to(client.device)).values
    guesses = hijacker.reconstruct(codes)
    mean = hijacker.mean_image.expand_as(images)
    return {
        "images": len(images),
        "mse": float(mean_squared_error(guesses, images).mean()),
        "ssim": float(structural_similarity(guesses, images).mean()),
        "mean_image_mse": float(mean_squared_error(mean, images).mean()),
        "mean_image_ssim": float(structural_similarity(mean, images).mean()),
    }
