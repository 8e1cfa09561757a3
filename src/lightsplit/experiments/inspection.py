"""Threats from the server: a hijacking server, and clients that inspect it."""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lightsplit.backdoors import INSPECTORS, FeatureSpaceHijacker, Inspector
from lightsplit.codecs import Code
from lightsplit.data import Dataset
from lightsplit.errors import ConfigError
from lightsplit.experiments.config import Experiment
from lightsplit.metrics import mean_squared_error, structural_similarity
from lightsplit.runtime import Client, ClientSide, Secret, Server

SHOWN = 64  # private images that the hijacker is tested on


def make_inspector(
    experiment: Experiment,
    side: ClientSide,
    client: int = 0,
    *,
    secret: Secret | None = None,
) -> Inspector | None:
    """Return the inspector of a client's received gradients; None without one."""
    seed = experiment.seed if secret is None else secret.value
    for name, options in experiment.inspector.items():
        kind = INSPECTORS.get(name)
        kind.check_codec(side.codec)  # type: ignore[attr-defined]
        known = {
            "head": side.modules["head"],
            "classes": experiment.make_task().classes,
            "seed": seed,  # a server that knew the probes would behave during them
            "client": client,
        }
        taken = inspect.signature(kind).parameters
        given = {key: value for key, value in known.items() if key in taken}
        return kind(**given, **options)
    return None


def make_hijacker(
    experiment: Experiment, server: Server, dataset: Dataset
) -> FeatureSpaceHijacker | None:
    """Return a hijacking server that has the test images as its public images."""
    if not experiment.server.hijack:
        return None
    if experiment.wire.format != "fp32":
        raise ConfigError(
            f"a hijacking server writes fp32 only, got {experiment.wire.format!r}"
        )

    def forward(code: Code) -> Code:
        server.side.set_training(False)
        return server.side.forward(code)

    public, _ = dataset.test.batch(torch.arange(len(dataset.test)))
    return FeatureSpaceHijacker(
        public, server.side.codec, forward=forward, seed=experiment.seed
    )


def inspection_record(clients: Sequence[Client]) -> dict[str, Any] | None:
    """Return the alarms that the clients raised, as record.json has them."""
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
    """Return the error of the stolen private images, and that of the mean image."""
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
