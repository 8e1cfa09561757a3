"""The parts of an experiment, each made from its settings alone.

Names become parts here: no package below knows an Experiment. The same pieces make a
run in one process (``build``) and either end of a run over the network (``deploy``), so
both give the same results.
"""

import copy
from collections.abc import Callable, Iterator, Sequence, Sized
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lightsplit.codecs import Codec, Projection
from lightsplit.data import (
    AUGMENTATIONS,
    Augmentation,
    Batches,
    Dataset,
    SampleSet,
    as_dataset,
    partition,
    pooled_halves,
)
from lightsplit.errors import ConfigError, DataError
from lightsplit.experiments.client_objectives import make_objectives
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.cuts import Cuts, make_formats
from lightsplit.experiments.label_protections import (
    make_protections,
    with_drawn_labels,
)
from lightsplit.experiments.own_secret import ClientSecrets
from lightsplit.experiments.private_codes import check_code_of_its_own
from lightsplit.experiments.recipes import make_precision, make_recipe
from lightsplit.experiments.weights import load_weights
from lightsplit.runs.schedule import Schedule
from lightsplit.runtime import (
    CachingServer,
    Client,
    ClientSide,
    HandOff,
    JoiningServer,
    OnceClient,
    OptimizerFactory,
    Secret,
    Server,
    ServerSide,
    begin_with_first_batch,
)
from lightsplit.runtime.encrypted import map_of
from lightsplit.runtime.ranks import device_of_this_rank
from lightsplit.splitting import SplitModel, split
from lightsplit.tasks import is_own
from lightsplit.transports import Send
from lightsplit.user_code import one_line_errors

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "amsgrad": partial(torch.optim.Adam, amsgrad=True),
    "sgd": torch.optim.SGD,
}


class TestBatches:
    """The test set in order; it can be iterated many times.

    Attributes:
        samples: of the test set.
    """

    __test__ = False

    def __init__(self, samples: SampleSet, batch_size: int) -> None:
        self.samples = samples
        self._batch_size = batch_size

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for start in range(0, len(self.samples), self._batch_size):
            stop = min(start + self._batch_size, len(self.samples))
            yield self.samples.batch(torch.arange(start, stop))


def load_dataset(experiment: Experiment, data_dir: Path | None = None) -> Dataset:
    """Return the dataset within the experiment's limits."""
    task = experiment.make_task()
    if task.data is None:
        raise ConfigError(f"the task {task.name} has no data function to train with")
    with one_line_errors(f"the data of {task.name} cannot be loaded", DataError):
        given = task.data(data_dir)
    whole = as_dataset(task.name, given, task.classes)
    if experiment.task.data_split == "pooled-halves":
        whole = pooled_halves(whole)
    train, test, seed = whole.train, whole.test, experiment.seed
    if experiment.task.train_limit:
        train = train.limit(experiment.task.train_limit, seed)
    if experiment.task.test_limit:
        test = test.limit(experiment.task.test_limit, seed)
    return Dataset(whole.name, train, test, whole.classes)


def split_data(experiment: Experiment, dataset: Dataset) -> list[Tensor]:
    """Return the indices of the samples that each client holds."""
    alpha = experiment.owners.alpha
    skew = None if alpha == "iid" else alpha
    return partition(
        dataset.train if skew is None else dataset.train.labels,
        experiment.owners.clients,
        alpha=skew,
        seed=experiment.seed,
    )


def load_parts(
    experiment: Experiment, first_weights: Secret | None = None
) -> SplitModel:
    """Return the model, cut into parts; this needs no data.

    A networked client draws its weights from ``first_weights`` and uses the head and
    the tail. Every other caller draws them from the run's seed.
    """
    task = experiment.make_task()
    if task.head_until is None or task.tail_from is None:
        raise ConfigError(
            f"{task.name} does not say where to cut: give --head-until and --tail-from"
        )
    with (first_weights or Secret(experiment.seed)).scope("model"):
        model = task.model()
    if experiment.task.weights is not None:
        load_weights(model, Path(experiment.task.weights))
    return split(
        model,
        head_until=task.head_until,
        tail_from=task.tail_from,
        example=task.example_inputs(),
        share=task.share,
    )


def make_server(experiment: Experiment, cuts: Cuts) -> Server:
    """Return the server with its side on the experiment's device."""
    parts, codec, output_codec = cuts.parts, cuts.codec, cuts.output_codec
    tail = None if experiment.split.topology == "u" else parts.tail
    encoder = None if output_codec is None else output_codec.encoder
    sends_no_gradient = experiment.split.gradients == "none"
    _move(experiment, parts.backbone, tail, codec.decoder, encoder)
    side = ServerSide(
        parts.backbone,
        codec,
        make_optimizer(experiment),
        tail=tail,
        output_codec=output_codec,
        freeze_backbone=experiment.split.freeze_backbone or sends_no_gradient,
        normalisation=experiment.statistics,
    )
    side.precision = make_precision(experiment.training)
    if experiment.server.encrypted:
        map_of(side)
    kind = CachingServer if experiment.sends_once else Server
    if experiment.is_parallel:
        kind = JoiningServer
    return kind(
        side,
        seed=experiment.seed,
        loss=experiment.make_task().loss,
        formats=make_formats(experiment),
        norm_limit=experiment.training.norm_limit,
        forward_only=sends_no_gradient,
        recipe=make_recipe(experiment.training),
    )


def make_client_side(experiment: Experiment, cuts: Cuts) -> ClientSide:
    """Return a client side that holds the given parts themselves."""
    tail = cuts.parts.tail if experiment.split.topology == "u" else None
    _move(experiment, cuts.parts.head, tail, cuts.codec.encoder, cuts.local_tail)
    has_terms = any(term.weight for term in experiment.objective.values())
    learns_nothing = experiment.split.gradients == "none" and not has_terms
    if learns_nothing and not experiment.sends_once:
        cuts.parts.head.requires_grad_(False)
        cuts.codec.encoder.requires_grad_(False)
    check_code_of_its_own(experiment, cuts.parts.head, cuts.codec.encoder)
    objectives = make_objectives(experiment, cuts)
    _move(experiment, *(one.objective for one in objectives))
    side = ClientSide(
        cuts.parts.head,
        tail,
        cuts.codec,
        make_optimizer(experiment),
        output_codec=cuts.output_codec,
        objectives=objectives,
        local_tail=cuts.local_tail,
        freeze=experiment.split.freeze_client,
    )
    if experiment.owners.heads == "private":
        begin_with_first_batch(side.modules)
    side.precision = make_precision(experiment.training)
    return side


def make_client_sides(experiment: Experiment, cuts: Cuts) -> list[ClientSide]:
    """Return the side of each client: the same object if shared, copies if private."""
    if experiment.owners.heads == "shared":
        return [make_client_side(experiment, cuts)] * experiment.owners.clients
    return [
        make_client_side(experiment, private_cuts(cuts))
        for _ in range(experiment.owners.clients)
    ]


def make_client(
    experiment: Experiment,
    side: ClientSide,
    send: Send,
    index: int = 0,
    *,
    secrets: ClientSecrets | None = None,
) -> Client:
    """Return a client with ``side`` that reaches the server through ``send``."""
    secrets = secrets or ClientSecrets.of_run(experiment.seed)
    kind = OnceClient if experiment.sends_once else Client
    return kind(
        side,
        send,
        index=index,
        secret=secrets.own,
        loss=experiment.make_task().loss,
        device=make_device(experiment.training.device),
        formats=make_formats(experiment),
        hand_off=make_hand_off(experiment, side, start=secrets.start),
        forward_only=experiment.split.gradients == "none",
        recipe=make_recipe(experiment.training),
        protections=make_protections(experiment),
    )


def make_hand_off(
    experiment: Experiment, side: ClientSide, *, start: str = ""
) -> HandOff:
    """Return how ``side``, which has its first weights, travels between clients."""
    return HandOff(
        side,
        experiment.wire.hand_off,
        optimizer_stays=experiment.wire.hand_off_optimizer == "stays",
        seed=experiment.seed,
        start=start,
        freezes=experiment.sends_once,
    )


def make_batches(
    experiment: Experiment,
    samples: SampleSet,
    indices: Tensor,
    client: int,
    *,
    secret: Secret | None = None,
) -> Batches:
    """Return the batches of the client that holds ``indices``, in a secret order.

    The labels are those that the client trains on.
    """
    secret = secret or Secret(experiment.seed)
    samples, seed = with_drawn_labels(experiment, samples, secret), secret.value
    size = experiment.training.batch_size
    augment = make_augmentations(experiment)
    return Batches(samples, indices, size, seed=seed, client=client, augment=augment)


def make_augmentations(experiment: Experiment) -> list[Augmentation]:
    """Return the random changes of training batches: the task's, then these."""
    named = [
        AUGMENTATIONS.create(name, **options)
        for name, options in experiment.augment.items()
    ]
    return [*experiment.make_task().augment, *named]


def make_schedule(experiment: Experiment, batches: Sequence[Sized]) -> Schedule:
    """Return the schedule of turns; ``batches`` has an entry for every client."""
    return Schedule(
        [len(held) for held in batches],
        turn_steps=turn_steps(experiment),
        epochs=experiment.training.epochs,
        max_steps=experiment.training.max_steps or 0,
        local_epochs=experiment.training.local_epochs or 0,
        whole_rounds=experiment.has_rounds,
    )


def turn_steps(experiment: Experiment) -> int:
    """Return the longest turn in the schedule's terms: 0 is a client's whole epoch."""
    steps = experiment.training.turn_steps
    return 0 if steps == "epoch" else steps


def every_client_evaluates(experiment: Experiment, *, has_own_data: bool) -> bool:
    """Return whether each client evaluates, rather than one for all.

    Args:
        experiment: the experiment.
        has_own_data: whether clients may have test data of their own.
    """
    owners = experiment.owners
    by_default = has_own_data and is_own(experiment.task.name)
    chosen = owners.evaluate or ("every" if by_default else "one")
    return owners.heads == "private" or (chosen == "every" and owners.clients > 1)


def make_optimizer(experiment: Experiment) -> OptimizerFactory:
    """Return a function that makes an optimizer over parameters."""
    training = experiment.training
    options = {"lr": training.lr, "weight_decay": training.weight_decay}
    if training.optimizer == "sgd":
        options["momentum"] = training.momentum
    return partial(OPTIMIZERS[training.optimizer], **options)


def check_single_samples(batches: list[Batches], modules: list[nn.Module]) -> None:
    """Refuse batches of one sample if a BatchNorm sees one value per channel."""
    if not any(isinstance(m, nn.BatchNorm1d) for top in modules for m in top.modules()):
        return
    for client, source in enumerate(batches):
        if len(source.indices) < 2 * len(source):
            raise ConfigError(
                f"client {client} has {len(source.indices)} samples: batches of 2 "
                "leave one sample alone, and BatchNorm cannot train on it; choose a "
                "larger batch_size"
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
    """Return the device of this process; refuse an unusable one with the reason."""
    try:
        device = device_of_this_rank(torch.device(name))
        name = str(device)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"cannot use device {name!r}: {reason}") from error
    return device


def _move(experiment: Experiment, *modules: nn.Module | None) -> None:
    device = make_device(experiment.training.device)
    for module in modules:
        if module is not None:
            module.to(device)


def private_cuts(cuts: Cuts) -> Cuts:
    """Return the cuts with a head, a tail and an encoder of their own."""
    parts = cuts.parts
    head, tail = copy.deepcopy((parts.head, parts.tail))  # together: they may share
    copied = SplitModel(head, parts.backbone, tail, parts.whole)
    return cuts._replace(
        parts=copied,
        codec=private_codec(cuts.codec),
        local_tail=copy.deepcopy(cuts.local_tail),
    )
