"""A run in one process: every part of an experiment, in place."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from lightsplit.codecs import Codec, OutputCodec
from lightsplit.data import Dataset, label_histogram, partition
from lightsplit.experiments import pieces
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.cuts import make_cuts
from lightsplit.protocol import Contract
from lightsplit.splitting import SplitModel
from lightsplit.training import EVALUATION_BATCH, Schedule, Trainer
from lightsplit.transports import ByteMeter, through


@dataclass(frozen=True)
class Job:
    """An experiment with every part in place, ready to run."""

    experiment: Experiment
    trainer: Trainer
    contract: Contract
    parts: SplitModel
    codec: Codec
    output_codec: OutputCodec | None
    dataset: Dataset
    held: list[Tensor]  # which training samples each client has

    @property
    def histogram(self) -> Tensor:
        """Training samples by client (row) and class (column)."""
        return label_histogram(
            self.dataset.train.labels, self.held, self.dataset.classes
        )


def build(experiment: Experiment, data_dir: Path | None = None) -> Job:
    """Return the job that ``experiment`` describes."""
    dataset = pieces.load_dataset(experiment, data_dir)
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    parts, codec, output_codec, contract = cuts
    indices = split_data(experiment, dataset)
    batches = [
        pieces.make_batches(experiment, dataset.train, held, client)
        for client, held in enumerate(indices)
    ]
    pieces.check_single_samples(batches, [parts.whole, codec.encoder, codec.decoder])
    meter = ByteMeter()
    meter.add("setup", experiment.clients * len(contract.to_json().encode()))
    server = pieces.make_server(experiment, cuts)
    sides = pieces.make_client_sides(experiment, cuts)
    clients = [
        pieces.make_client(experiment, side, through(meter, server.handle), index)
        for index, side in enumerate(sides)
    ]
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
        test=pieces.TestBatches(dataset.test, EVALUATION_BATCH),
        eval_every=experiment.eval_every,
        patience=experiment.patience,
    )
    return Job(
        experiment, trainer, contract, parts, codec, output_codec, dataset, indices
    )


def split_data(experiment: Experiment, dataset: Dataset) -> list[Tensor]:
    """Return which samples each client holds."""
    return partition(
        dataset.train.labels,
        experiment.clients,
        alpha=experiment.alpha or None,
        seed=experiment.seed,
    )
