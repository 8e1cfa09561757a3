"""The parts of an experiment, each made from its settings alone.

Names become parts here, and nowhere below: no object below holds an Experiment. The
same pieces make a run in one process (``build``) and either end of one over the network
(``deploy``), which is why both come out the same.
"""

import copy
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from lightsplit import seeding
from lightsplit.codecs import CODECS, Codec, Projection
from lightsplit.data import DATASETS, Batches, Dataset, Samples, data_folder
from lightsplit.errors import ConfigError
from lightsplit.experiments.config import FACTS, Experiment
from lightsplit.experiments.weights import load_weights
from lightsplit.models import MODELS
from lightsplit.protocol import Contract
from lightsplit.runtime import Client, ClientSide, OptimizerFactory, Server, ServerSide
from lightsplit.splitting import SplitModel
from lightsplit.transports import Send

OPTIMIZERS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}


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


def load_dataset(experiment: Experiment, data_dir: Path | None = None) -> Dataset:
    """Return the dataset within the experiment's limits."""
    whole = DATASETS.create(experiment.dataset, data_dir=data_folder(data_dir))
    train, test, seed = whole.train, whole.test, experiment.seed
    if experiment.train_limit:
        train = train.limit(experiment.train_limit, seed)
    if experiment.test_limit:
        test = test.limit(experiment.test_limit, seed)
    return Dataset(whole.name, train, test, whole.classes)


def load_parts(experiment: Experiment) -> SplitModel:
    """Return the model, cut; no data is needed for it."""
    shape, classes = FACTS[experiment.dataset]
    with seeding.scope(experiment.seed, "model"):
        zoo = MODELS.create(experiment.model, cut=experiment.cut, classes=classes)
    if zoo.input_shape != shape:
        raise ConfigError(
            f"{experiment.model} takes images of shape {zoo.input_shape}, "
            f"{experiment.dataset} has {shape}"
        )
    if experiment.weights:
        load_weights(zoo.module, Path(experiment.weights))
    return zoo.split()


def make_codec_and_contract(
    experiment: Experiment, parts: SplitModel
) -> tuple[Codec, Contract]:
    """Return the codec for the model's cut and the contract for both."""
    shapes = _cut_shapes(parts, FACTS[experiment.dataset][0])
    codec = _make_codec(experiment, shapes[0])
    return codec, _make_contract(experiment, shapes, codec)


def plan_codec_and_contract(
    experiment: Experiment, parts: SplitModel
) -> tuple[Codec, Contract]:
    """Return the same sizes and bytes without drawing a matrix, for plans."""
    shapes = _cut_shapes(parts, FACTS[experiment.dataset][0])
    drawn = {"projection": "dct"} if experiment.projection else {}
    codec = _make_codec(experiment.model_copy(update=drawn), shapes[0])
    return codec, _make_contract(experiment, shapes, codec)


def make_server(experiment: Experiment, parts: SplitModel, codec: Codec) -> Server:
    """Return the server with its side on the experiment's device."""
    device = make_device(experiment.device)
    for module in (parts.backbone, parts.tail, codec.decoder):
        if module is not None:
            module.to(device)
    side = ServerSide(
        parts.backbone,
        codec,
        make_optimizer(experiment),
        tail=None if experiment.topology == "u" else parts.tail,
        freeze_backbone=experiment.freeze_backbone,
    )
    return Server(side, seed=experiment.seed)


def make_client_side(
    experiment: Experiment, parts: SplitModel, codec: Codec
) -> ClientSide:
    """Return a client side that holds the very parts that are given."""
    device = make_device(experiment.device)
    tail = parts.tail if experiment.topology == "u" else None
    for module in (parts.head, tail, codec.encoder):
        if module is not None:
            module.to(device)
    return ClientSide(parts.head, tail, codec, make_optimizer(experiment))


def make_client_sides(
    experiment: Experiment, parts: SplitModel, codec: Codec
) -> list[ClientSide]:
    """Return the side of each client: one and the same, or copies."""
    if experiment.heads == "shared":
        return [make_client_side(experiment, parts, codec)] * experiment.clients
    return [
        make_client_side(
            experiment,
            SplitModel(
                copy.deepcopy(parts.head),
                parts.backbone,
                copy.deepcopy(parts.tail),
                parts.whole,
            ),
            private_codec(codec),
        )
        for _ in range(experiment.clients)
    ]


def make_client(
    experiment: Experiment, side: ClientSide, send: Send, index: int = 0
) -> Client:
    """Return a client with ``side`` that reaches the server by ``send``."""
    return Client(
        side,
        send,
        index=index,
        wcc=experiment.wcc,
        seed=experiment.seed,
        device=make_device(experiment.device),
    )


def make_batches(
    experiment: Experiment, samples: Samples, indices: Tensor, client: int
) -> Batches:
    """Return the batches of the client that holds ``indices``."""
    return Batches(
        samples, indices, experiment.batch_size, seed=experiment.seed, client=client
    )


def make_optimizer(experiment: Experiment) -> OptimizerFactory:
    """Return what makes an optimizer over given parameters."""
    options = {"lr": experiment.lr, "weight_decay": experiment.weight_decay}
    if experiment.optimizer == "sgd":
        options["momentum"] = experiment.momentum
    return partial(OPTIMIZERS[experiment.optimizer], **options)


def check_single_samples(batches: list[Batches], modules: list[nn.Module]) -> None:
    """Refuse batches of one sample where a BatchNorm sees one value per channel."""
    if not any(isinstance(m, nn.BatchNorm1d) for top in modules for m in top.modules()):
        return
    for client, source in enumerate(batches):
        if len(source.indices) < 2 * len(source):
            raise ConfigError(
                f"client {client} has {len(source.indices)} samples: in batches of 2 "
                "one is left alone, and BatchNorm cannot train on it; choose a larger "
                "batch_size"
            )


def private_codec(codec: Codec) -> Codec:
    """Return a codec with an encoder of its own; a fixed projection stays shared."""
    fixed = [m for m in codec.encoder.modules() if isinstance(m, Projection)]
    mine = copy.copy(codec)
    mine.encoder = copy.deepcopy(
        codec.encoder, {id(module): module for module in fixed}
    )
    return mine


def make_device(name: str) -> torch.device:
    """Return the device, or say why it cannot be used."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"cannot use device {name!r}: {reason}") from error
    return device


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
    try:
        with seeding.scope(experiment.seed, "codec"):
            return CODECS.create(
                experiment.codec,
                shape=shape,
                ratio=experiment.ratio,
                seed=seeding.derive(experiment.seed, "projection"),
                **experiment.codec_options(),
            )
    except RuntimeError as error:  # torch's word for too little memory
        raise ConfigError(f"cannot make {experiment.codec}: {error}") from error


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
