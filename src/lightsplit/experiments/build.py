"""A run in one process: all parts of an experiment, connected."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from torch import Tensor

from lightsplit.backdoors import FeatureSpaceHijacker
from lightsplit.codecs import Codec, OutputCodec
from lightsplit.data import Batches, Dataset, label_histogram
from lightsplit.errors import ConfigError
from lightsplit.experiments import pieces
from lightsplit.experiments.backdoors import make_guard, poisoned
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.cuts import make_cuts
from lightsplit.experiments.inspection import make_hijacker, make_inspector
from lightsplit.experiments.round_workers import NO_KEY, make_crew
from lightsplit.protocol import Contract
from lightsplit.runs import EVALUATION_BATCH, Scoring
from lightsplit.runs.rounds import Attendance
from lightsplit.runtime import Client, ClientSide, WeightAveraging
from lightsplit.simulation import (
    Crew,
    CrewedTrainer,
    Gathering,
    RoundTrainer,
    SharedSide,
    SplitFedTrainer,
    Trainer,
)
from lightsplit.splitting import SplitModel
from lightsplit.transports import ByteMeter, through


@dataclass(frozen=True)
class Job:
    """An experiment with all its parts connected, ready to run."""

    experiment: Experiment
    trainer: Trainer
    contract: Contract
    parts: SplitModel
    codec: Codec
    output_codec: OutputCodec | None
    dataset: Dataset
    held: list[Tensor]  # indices of the training samples of each client
    shares: list[Batches]  # what each client trains on, before any poison
    hijacker: FeatureSpaceHijacker | None = None

    @property
    def histogram(self) -> Tensor | None:
        """Training samples by client (row) and class (column); None without classes."""
        if self.dataset.classes is None:
            return None
        return label_histogram(
            self.dataset.train.labels, self.held, self.dataset.classes
        )

    @property
    def test(self) -> pieces.TestBatches:
        """The test set, in batches."""
        return pieces.TestBatches(self.dataset.test, EVALUATION_BATCH)

    def witnesses(self) -> list[Client]:
        """Return the honest clients (one if they share a head), bypassing the meter."""
        malicious = self.experiment.malicious_indices()
        honest = [c for c in self.trainer.clients if c.index not in malicious]
        chosen = honest or list(self.trainer.clients)
        if self.trainer.has_shared_heads:
            chosen = chosen[:1]
        send = self.trainer.server.handle
        return [
            pieces.make_client(self.experiment, client.side, send, client.index)
            for client in chosen
        ]


def build(
    experiment: Experiment,
    data_dir: Path | None = None,
    participation: Sequence[Attendance] = (),
    workers: int | None = None,
) -> Job:
    """Return the job that ``experiment`` describes.

    Args:
        experiment: to run.
        data_dir: folder of the datasets.
        participation: who takes part in each round; if empty, everybody.
        workers: processes that compute the owners of a round; None: this one alone.
    """
    crew = None if workers is None else make_crew(experiment, data_dir, workers)
    dataset = pieces.load_dataset(experiment, data_dir)
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    parts, codec, output_codec, contract, *_ = cuts
    indices = pieces.split_data(experiment, dataset)
    batches = [
        pieces.make_batches(experiment, dataset.train, held, client)
        for client, held in enumerate(indices)
    ]
    pieces.check_single_samples(batches, [parts.whole, codec.encoder, codec.decoder])
    meter = ByteMeter()
    meter.add("setup", experiment.owners.clients * len(contract.to_json().encode()))
    server = pieces.make_server(experiment, cuts)
    sides = pieces.make_client_sides(experiment, cuts)
    guard = make_guard(experiment, server, contract)
    hijacker = make_hijacker(experiment, server, dataset)
    handle = hijacker.handle if hijacker else server.handle
    gathering = Gathering(handle)
    if experiment.is_parallel:
        handle = gathering.send
    send = through(meter, through(guard.collector, handle) if guard else handle)
    clients = [
        pieces.make_client(experiment, side, send, index)
        for index, side in enumerate(sides)
    ]
    for client in clients:
        client.inspector = make_inspector(experiment, client.side, client.index)
    make_trainer: Callable[..., Trainer] = Trainer
    if experiment.has_rounds:
        kind = _round_trainer if experiment.is_parallel else _splitfed_trainer
        make_trainer = partial(
            kind(contract, sides[0], gathering, crew),
            participation=participation,
            seed=experiment.seed,
            owners_per_round=experiment.owners.owners_per_round or 0,
        )
    trainer = make_trainer(
        clients,
        server,
        batches=[
            poisoned(experiment, source, client)
            for client, source in enumerate(batches)
        ],
        schedule=pieces.make_schedule(experiment, batches),
        meter=meter,
        test=pieces.TestBatches(dataset.test, EVALUATION_BATCH),
        eval_every=experiment.training.eval_every or 0,
        patience=experiment.training.patience or 0,
        guard=guard,
        scoring=Scoring.of(experiment.make_task()),
        every_client_evaluates=pieces.every_client_evaluates(
            experiment, has_own_data=False
        ),
    )
    return Job(
        experiment,
        trainer,
        contract,
        parts,
        codec,
        output_codec,
        dataset,
        indices,
        batches,
        hijacker,
    )


def _round_trainer(
    contract: Contract,
    side: ClientSide,
    gathering: Gathering,
    crew: Crew | None,
) -> Callable[..., Trainer]:
    """Return a function that makes the trainer of parallel rounds."""
    shared = None
    if any(one.device.type != "cpu" for one in side.modules.parameters()):
        raise ConfigError(
            "in one process the owners of a parallel round compute on the CPU: take "
            "--device cpu or --rounds turns; over a network each may use its own GPU"
        )
    if contract.averages_side:
        shared = SharedSide(side, NO_KEY, contract.batch_size)
    if crew is not None:
        return partial(CrewedTrainer, gathering=gathering, shared=shared, crew=crew)
    return partial(RoundTrainer, gathering=gathering, shared=shared)


def _splitfed_trainer(
    contract: Contract, _side: ClientSide, _gathering: Gathering, _crew: Crew | None
) -> Callable[..., Trainer]:
    """Return a function that makes the trainer of SplitFed rounds."""
    return partial(
        SplitFedTrainer,
        averaging=WeightAveraging(NO_KEY, contract.batch_size),
        has_copies=contract.has_copies,
    )
