"""The parts of an experiment, each made from its settings alone.

Names become parts here, and nowhere below: no object below holds an Experiment. The
same pieces make a run in one process (``build``) and either end of one over the network
(``deploy``), which is why both come out the same.
"""

import copy
from collections.abc import Callable, Iterator, Sequence, Sized
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from lightsplit import seeding
from lightsplit.codecs import Codec, Projection
from lightsplit.data import (
    DATASETS,
    Batches,
    Dataset,
    Samples,
    data_folder,
    pooled_halves,
)
from lightsplit.errors import ConfigError
from lightsplit.experiments.config import FACTS, Experiment
from lightsplit.experiments.cuts import Cuts, make_formats
from lightsplit.experiments.weights import load_weights
from lightsplit.models import MODELS
from lightsplit.runtime import (
    Client,
    ClientSide,
    HandOff,
    OptimizerFactory,
    Server,
    ServerSide,
)
from lightsplit.splitting import SplitModel
from lightsplit.training.schedule import Schedule
from lightsplit.transports import Send

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "amsgrad": partial(torch.optim.Adam, amsgrad=True),
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
    if experiment.data_split == "pooled-halves":
        whole = pooled_halves(whole)
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


def make_server(experiment: Experiment, cuts: Cuts) -> Server:
    """Return the server with its side on the experiment's device."""
    parts, codec, output_codec = cuts.parts, cuts.codec, cuts.output_codec
    tail = None if experiment.topology == "u" else parts.tail
    encoder = None if output_codec is None else output_codec.encoder
    _move(experiment, parts.backbone, tail, codec.decoder, encoder)
    side = ServerSide(
        parts.backbone,
        codec,
        make_optimizer(experiment),
        tail=tail,
        output_codec=output_codec,
        freeze_backbone=experiment.freeze_backbone,
    )
    return Server(side, seed=experiment.seed, formats=make_formats(experiment))


def make_client_side(experiment: Experiment, cuts: Cuts) -> ClientSide:
    """Return a client side that holds the very parts that are given."""
    tail = cuts.parts.tail if experiment.topology == "u" else None
    _move(experiment, cuts.parts.head, tail, cuts.codec.encoder)
    return ClientSide(
        cuts.parts.head,
        tail,
        cuts.codec,
        make_optimizer(experiment),
        output_codec=cuts.output_codec,
    )


def make_client_sides(experiment: Experiment, cuts: Cuts) -> list[ClientSide]:
    """Return the side of each client: one and the same, or copies."""
    if experiment.heads == "shared":
        return [make_client_side(experiment, cuts)] * experiment.clients
    return [
        make_client_side(experiment, _private(cuts)) for _ in range(experiment.clients)
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
        formats=make_formats(experiment),
        hand_off=HandOff(side, experiment.hand_off, seed=experiment.seed),
    )


def make_batches(
    experiment: Experiment, samples: Samples, indices: Tensor, client: int
) -> Batches:
    """Return the batches of the client that holds ``indices``."""
    return Batches(
        samples, indices, experiment.batch_size, seed=experiment.seed, client=client
    )


def make_schedule(experiment: Experiment, batches: Sequence[Sized]) -> Schedule:
    """Return who trains when; ``batches`` are those of every client."""
    return Schedule(
        [len(held) for held in batches],
        turn_steps=experiment.turn_steps,
        epochs=experiment.epochs,
        max_steps=experiment.max_steps,
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


def _move(experiment: Experiment, *modules: nn.Module | None) -> None:
    device = make_device(experiment.device)
    for module in modules:
        if module is not None:
            module.to(device)


def _private(cuts: Cuts) -> Cuts:
    """Return the cuts with a head, a tail and an encoder of their own."""
    parts = cuts.parts
    copied = SplitModel(
        copy.deepcopy(parts.head),
        parts.backbone,
        copy.deepcopy(parts.tail),
        parts.whole,
    )
    return cuts._replace(parts=copied, codec=private_codec(cuts.codec))
