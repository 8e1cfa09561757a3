"""Training codec ``franken`` before a run, to repeat what a trained head gives.

    inputs ─► trained head ─► activation ─► encoder ─► latent + noise ─► decoder ─► lifted
              (stays as it is)     │                         └─► prior ─► bits    │
                                   └───────── squared error ──────────────────────┘

    loss = Σ (lifted − activation)² + λ · bits

The data are those of the head's own run, so that run must be on public data. Uniform
noise from −½ to ½ stands in for rounding, which has no useful gradient. At the end the
prior becomes a table of integer frequencies, and the codec is measured on test samples
with exactly the bytes that a run will send.
"""  # noqa: E501

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ExponentialLR

from lightsplit import seeding
from lightsplit.codecs import Code, refuse_joined
from lightsplit.codecs.entropy_coding import whole_frequencies
from lightsplit.codecs.franken import REACH, Franken
from lightsplit.codecs.prior import FactorisedPrior
from lightsplit.data import SampleSet
from lightsplit.errors import ConfigError
from lightsplit.experiments import pieces
from lightsplit.experiments.config import Experiment, make_experiment, read_experiment
from lightsplit.nesting import to_device
from lightsplit.results import RunFolder
from lightsplit.results.settings import merge

_BATCH, _RATE = 16, 1e-3  # as published
_PRIOR_RATE = 1e-2  # its few numbers must keep up with the code
_FIRST_DEVIATION = 4.0  # of the latents: several levels, far from the last one
_LAST_RATE = 0.6105**5  # share of the rate at the end; published for five epochs
_CHUNK = 500
OnEpoch = Callable[[int, float, float], None]


@dataclass(frozen=True)
class Recipe:
    """How a codec is distilled.

    Attributes:
        channels, hidden: options of the codec.
        rate_weight: what a bit costs, in squared error (λ).
        epochs: passes over the training data.
    """

    channels: int = 8
    hidden: int = 48
    rate_weight: float = 0.128
    epochs: int = 5


class Distilled(NamedTuple):
    """A distilled codec, and its results on test samples.

    Attributes:
        codec: the codec.
        sample_bytes: mean bytes of a sample's code on the wire.
        error: squared error over the square of the activations.
    """

    codec: Franken
    sample_bytes: float
    error: float


def distil(
    teacher: RunFolder,
    recipe: Recipe,
    *,
    data_dir: Path | None = None,
    on_epoch: OnEpoch | None = None,
) -> Distilled:
    """Return a codec for the cut of a finished run on public data.

    Args:
        teacher: the run whose head the codec imitates.
        recipe: how.
        data_dir: where datasets are.
        on_epoch: called with the epoch, squared error and bits of a sample.
    """
    experiment = _experiment_of(teacher)
    device = pieces.make_device(experiment.training.device)
    parts = pieces.load_parts(experiment)
    refuse_joined(Franken.name, parts.sent)
    data = pieces.load_dataset(experiment, data_dir)
    head = _Head(parts.head.to(device).eval(), device)
    with seeding.scope(experiment.seed, "distil"):
        codec = Franken(
            head.shape(data.train), channels=recipe.channels, hidden=recipe.hidden
        )
        prior = FactorisedPrior(recipe.channels).to(device)
        codec.encoder.to(device)
        codec.decoder.to(device)
        codec.encoder.spread(next(head.in_order(data.train)), _FIRST_DEVIATION)
        _train(codec, prior, head, data.train, recipe, on_epoch)
    codec.use_frequencies(whole_frequencies(prior.shares(REACH).cpu()))
    return Distilled(codec, *_measure(codec, head, data.test))


def _experiment_of(teacher: RunFolder) -> Experiment:
    tables = read_experiment(teacher.experiment_file)
    weights = str(teacher.path / "model.safetensors")
    experiment = make_experiment(merge(tables, {"task": {"weights": weights}}))
    if experiment.codec.name != "raw":
        raise ConfigError(
            "a codec is distilled from a head that was trained without one: the run "
            f"must have codec raw, got {experiment.codec.name}"
        )
    return experiment


class _Head:
    """A trained head that stays as it is."""

    def __init__(self, module: nn.Module, device: torch.device) -> None:
        self._module = module
        self._device = device

    def activations(self, samples: SampleSet, rows: Tensor) -> Tensor:
        """Return the activations of some samples."""
        inputs, _ = samples.batch(rows)
        with torch.no_grad():
            made: Tensor = self._module(to_device(inputs, self._device))
        return made

    def in_order(self, samples: SampleSet) -> Iterator[Tensor]:
        """Yield the activations of all samples."""
        for rows in torch.split(torch.arange(len(samples)), _CHUNK):
            yield self.activations(samples, rows)

    def shape(self, samples: SampleSet) -> tuple[int, ...]:
        """Return the shape of one activation."""
        return tuple(self.activations(samples, torch.arange(1)).shape[1:])


def _train(
    codec: Franken,
    prior: FactorisedPrior,
    head: _Head,
    samples: SampleSet,
    recipe: Recipe,
    on_epoch: OnEpoch | None,
) -> None:
    ends = nn.ModuleList([codec.encoder, codec.decoder])
    groups: list[dict[str, Any]] = [
        {"params": list(ends.parameters())},
        {"params": list(prior.parameters()), "lr": _PRIOR_RATE},
    ]
    optimizer = torch.optim.Adam(groups, lr=_RATE)
    schedule = ExponentialLR(optimizer, _LAST_RATE ** (1 / recipe.epochs))
    for epoch in range(recipe.epochs):
        errors, rates = 0.0, 0.0
        for rows in torch.split(torch.randperm(len(samples)), _BATCH):
            activation = head.activations(samples, rows)
            error, bits = _terms(codec, prior, activation)
            optimizer.zero_grad()
            loss: Any = (error + recipe.rate_weight * bits).mean()
            loss.backward()
            optimizer.step()
            errors += float(error.detach().sum())
            rates += float(bits.detach().sum())
        schedule.step()
        if on_epoch is not None:
            on_epoch(epoch, errors / len(samples), rates / len(samples))


def _terms(
    codec: Franken, prior: FactorisedPrior, activation: Tensor
) -> tuple[Tensor, Tensor]:
    """Return squared error and bits of each sample, with noise instead of rounding."""
    latent = codec.encoder.latent(activation)
    noisy = latent + torch.rand_like(latent) - 0.5
    lifted = codec.decoder(Code(noisy))
    error = (lifted - activation).square().flatten(1).sum(dim=1)
    return error, prior.bits(noisy.view(len(noisy), codec.code_shape[0], -1))


def _measure(codec: Franken, head: _Head, samples: SampleSet) -> tuple[float, float]:
    """Return mean bytes of a sample and the relative squared error, as in a run."""
    sent, error, energy = 0, 0.0, 0.0
    for activation in head.in_order(samples):
        with torch.no_grad():
            code: Code = codec.encoder(activation)
            packed = codec.pack(code)
            lifted = codec.decoder(codec.unpack(packed))
        sent += sum(tensor.nbytes for tensor in (packed.values, *packed.side))
        error += float((lifted - activation).square().sum())
        energy += float(activation.square().sum())
    return sent / len(samples), error / energy if energy else 0.0
