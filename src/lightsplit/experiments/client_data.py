"""The data of one networked client: its share of a dataset, or all of its own files."""

from functools import cached_property
from pathlib import Path
from typing import Protocol

import torch
from torch import nn

from lightsplit.data import Batches, Dataset, SampleSet
from lightsplit.errors import ConfigError, DataError
from lightsplit.experiments import pieces
from lightsplit.experiments.config import Experiment
from lightsplit.runs import EVALUATION_BATCH
from lightsplit.runs.schedule import Schedule
from lightsplit.runtime import Secret


class ClientData(Protocol):
    """What a client trains and tests on."""

    @property
    def train(self) -> SampleSet:
        """The samples that batches are made of, with their true labels."""
        ...

    @property
    def test(self) -> pieces.TestBatches:
        """The test set, in batches."""
        ...

    def batches(self, index: int) -> Batches:
        """Return the training batches of the client with this index."""
        ...

    def steps_of(self, index: int) -> int | None:
        """Return the client's steps in the whole schedule, if that can be known."""
        ...

    def check(self, modules: list[nn.Module]) -> None:
        """Refuse batches that the modules cannot train on."""
        ...


def find_data(
    experiment: Experiment,
    secret: Secret,
    *,
    data_dir: Path | None = None,
    own_data: Path | None = None,
) -> ClientData:
    """Return the data in the owner's folder, or else the dataset, to be divided."""
    if own_data is None:
        dataset = pieces.load_dataset(experiment, data_dir)
        return DividedData(experiment, dataset, secret)
    if data_dir is not None:
        raise ConfigError("give --data for your own files or --data-dir, not both")
    if experiment.owners.alpha != "iid":
        raise ConfigError(
            "alpha divides a dataset among clients; --data is not divided"
        )
    return OwnData(experiment, load_own(experiment, own_data), secret, own_data)


def load_own(experiment: Experiment, folder: Path) -> Dataset:
    """Return the samples in an owner's folder; nothing outside it is read."""
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder} to take your data from")
    return pieces.load_dataset(experiment, folder)


class OwnData:
    """All samples of one owner.

    Args:
        experiment: of the run.
        dataset: of the owner alone.
        secret: of the client; it gives the order of the batches.
        folder: that the samples come from, for messages.
    """

    def __init__(
        self, experiment: Experiment, dataset: Dataset, secret: Secret, folder: Path
    ) -> None:
        size, count = experiment.training.batch_size, len(dataset.train)
        if count < size:
            raise DataError(
                f"{folder} has {count} training samples, fewer than a batch of {size}; "
                "add samples, or agree on a smaller batch_size with the server"
            )
        self._experiment = experiment
        self.train = dataset.train
        self._secret = secret
        self.test = pieces.TestBatches(dataset.test, EVALUATION_BATCH)

    def batches(self, index: int) -> Batches:
        """Return the training batches of the client with this index."""
        rows = torch.arange(len(self.train))
        return pieces.make_batches(
            self._experiment, self.train, rows, index, secret=self._secret
        )

    def steps_of(self, _index: int) -> int | None:
        """Return None: how many turns there are depends on the other owners."""
        return None

    def check(self, modules: list[nn.Module]) -> None:
        """Refuse batches that the modules cannot train on."""
        pieces.check_single_samples([self.batches(0)], modules)


class DividedData:
    """A dataset that all clients have, of which each takes its share.

    Args:
        experiment: of the run.
        dataset: the whole dataset.
        secret: of the client; it gives the order of the batches.
    """

    def __init__(
        self, experiment: Experiment, dataset: Dataset, secret: Secret
    ) -> None:
        self._experiment = experiment
        self._all = [
            pieces.make_batches(experiment, dataset.train, held, index, secret=secret)
            for index, held in enumerate(pieces.split_data(experiment, dataset))
        ]
        self.train = dataset.train
        self.test = pieces.TestBatches(dataset.test, EVALUATION_BATCH)

    def batches(self, index: int) -> Batches:
        """Return the training batches of the client with this index."""
        return self._all[index]

    def steps_of(self, index: int) -> int | None:
        """Return the client's steps in the whole schedule."""
        return self._schedule.steps_of(index)

    def check(self, modules: list[nn.Module]) -> None:
        """Refuse batches that the modules cannot train on."""
        pieces.check_single_samples(self._all, modules)

    @cached_property
    def _schedule(self) -> Schedule:
        return pieces.make_schedule(self._experiment, self._all)
