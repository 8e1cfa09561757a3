"""Names become parts here, and nowhere below.

Below this module every object is built with plain arguments; none holds an Experiment.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from lightsplit import seeding
from lightsplit.codecs import CODECS, Codec, Projection
from lightsplit.data import (
    DATASETS,
    Batches,
    Dataset,
    Samples,
    data_folder,
    label_histogram,
    partition,
)
from lightsplit.errors import ConfigError
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.weights import load_weights
from lightsplit.models import MODELS
from lightsplit.protocol import Contract
from lightsplit.runtime import Client, ClientSide, OptimizerFactory, Server, ServerSide
from lightsplit.splitting import SplitModel
from lightsplit.training import Schedule, Trainer
from lightsplit.transports import ByteMeter, through

OPTIMIZERS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}
EVALUATION_BATCH = 512


@dataclass(frozen=True)
class Job:
    """An experiment with every part in place, ready to run."""

    experiment: Experiment
    trainer: Trainer
    contract: Contract
    parts: SplitModel
    codec: Codec
    histogram: Tensor


class TestBatches:
    """The test set in order; can be iterated again and again."""

    __test__ = False

    def __init__(self, samples: Samples, batch_size: int) -> None:
        self._samples = samples
        self._batch_size = batch_size

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for start in range(0, len(self._samples), self._batch_size):
            stop = min(start + self._batch_size, len(self._samples))
            yield self._samples.batch(torch.arange(start, stop))


def build(experiment: Experiment, data_dir: Path | None = None) -> Job:
    """Return the job that ``experiment`` describes."""
    dataset = _load_dataset(experiment, data_dir)
    parts = _load_parts(experiment, dataset)
    shapes = _cut_shapes(parts, dataset.train.shape)
    codec = _make_codec(experiment, shapes[0])
    contract = _make_contract(experiment, shapes, codec)
    indices = partition(
        dataset.train.labels,
        experiment.clients,
        alpha=experiment.alpha or None,
        seed=experiment.seed,
    )
    batches = [
        Batches(
            dataset.train,
            held,
            experiment.batch_size,
            seed=experiment.seed,
            client=client,
        )
        for client, held in enumerate(indices)
    ]
    meter = ByteMeter()
    meter.add("setup", experiment.clients * len(contract.to_json().encode()))
    server, clients = _make_ends(experiment, parts, codec, meter)
    trainer = Trainer(
        clients,
        server,
        batches=batches,
        schedule=Schedule(
            [len(source) for source in batches],
            turn_steps=experiment.turn_steps,
            epochs=experiment.epochs,
            max_steps=experiment.max_steps,
        ),
        meter=meter,
        test=TestBatches(dataset.test, EVALUATION_BATCH),
        eval_every=experiment.eval_every,
        patience=experiment.patience,
    )
    histogram = label_histogram(dataset.train.labels, indices, dataset.classes)
    return Job(experiment, trainer, contract, parts, codec, histogram)


def make_optimizer(experiment: Experiment) -> OptimizerFactory:
    """Return what makes an optimizer over given parameters."""
    options = {"lr": experiment.lr, "weight_decay": experiment.weight_decay}
    if experiment.optimizer == "sgd":
        options["momentum"] = experiment.momentum
    return partial(OPTIMIZERS[experiment.optimizer], **options)


def _load_dataset(experiment: Experiment, data_dir: Path | None) -> Dataset:
    whole = DATASETS.create(experiment.dataset, data_dir=data_folder(data_dir))
    train, test, seed = whole.train, whole.test, experiment.seed
    if experiment.train_limit:
        train = train.limit(experiment.train_limit, seed)
    if experiment.test_limit:
        test = test.limit(experiment.test_limit, seed)
    return Dataset(whole.name, train, test, whole.classes)


def _load_parts(experiment: Experiment, dataset: Dataset) -> SplitModel:
    with seeding.scope(experiment.seed, "model"):
        zoo = MODELS.create(
            experiment.model, cut=experiment.cut, classes=dataset.classes
        )
    if zoo.input_shape != dataset.train.shape:
        raise ConfigError(
            f"{experiment.model} takes images of shape {zoo.input_shape}, "
            f"{experiment.dataset} has {dataset.train.shape}"
        )
    if experiment.weights:
        load_weights(zoo.module, Path(experiment.weights))
    return zoo.split()


def _cut_shapes(
    parts: SplitModel, input_shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of an activation and of an output, without the batch."""
    parts.whole.eval()
    with torch.no_grad():
        activation = parts.head(torch.zeros(1, *input_shape))
        output = parts.backbone(activation)
    return tuple(activation.shape[1:]), tuple(output.shape[1:])


def _make_codec(experiment: Experiment, shape: tuple[int, ...]) -> Codec:
    with seeding.scope(experiment.seed, "codec"):
        return CODECS.create(
            experiment.codec,
            shape=shape,
            ratio=experiment.ratio,
            seed=seeding.derive(experiment.seed, "projection"),
            **experiment.codec_options(),
        )


def _make_contract(
    experiment: Experiment,
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    codec: Codec,
) -> Contract:
    return Contract(
        model=experiment.model,
        cut=experiment.cut,
        topology=experiment.topology,
        heads=experiment.heads,
        activation_shape=shapes[0],
        output_shape=shapes[1],
        codec=experiment.codec,
        codec_options={
            "seed": seeding.derive(experiment.seed, "projection"),
            **experiment.codec_options(),
        },
        code_size=codec.code_size,
        fingerprint=codec.fingerprint,
        seed=experiment.seed,
        clients=experiment.clients,
        batch_size=experiment.batch_size,
        turn_steps=experiment.turn_steps,
    )


def _make_ends(
    experiment: Experiment, parts: SplitModel, codec: Codec, meter: ByteMeter
) -> tuple[Server, list[Client]]:
    optimizer, device = make_optimizer(experiment), _device(experiment.device)
    is_u = experiment.topology == "u"
    for module in (parts.whole, codec.encoder, codec.decoder):
        module.to(device)
    server = Server(
        ServerSide(
            parts.backbone,
            codec,
            optimizer,
            tail=None if is_u else parts.tail,
            freeze_backbone=experiment.freeze_backbone,
        ),
        seed=experiment.seed,
    )
    tail = parts.tail if is_u else None
    sides = _client_sides(experiment, parts.head, tail, codec, optimizer)
    clients = [
        Client(
            side,
            through(meter, server.handle),
            index=index,
            wcc=experiment.wcc,
            seed=experiment.seed,
            device=device,
        )
        for index, side in enumerate(sides)
    ]
    return server, clients


def _client_sides(
    experiment: Experiment,
    head: nn.Module,
    tail: nn.Module | None,
    codec: Codec,
    optimizer: OptimizerFactory,
) -> list[ClientSide]:
    if experiment.heads == "shared":
        return [ClientSide(head, tail, codec, optimizer)] * experiment.clients
    return [
        ClientSide(copy.deepcopy(head), copy.deepcopy(tail), _private(codec), optimizer)
        for _ in range(experiment.clients)
    ]


def _private(codec: Codec) -> Codec:
    """Return a codec with an encoder of its own; a fixed projection stays shared."""
    fixed = [m for m in codec.encoder.modules() if isinstance(m, Projection)]
    mine = copy.copy(codec)
    mine.encoder = copy.deepcopy(
        codec.encoder, {id(module): module for module in fixed}
    )
    return mine


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"cannot use device {name!r}: {reason}") from error
    return device
