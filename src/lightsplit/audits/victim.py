"""The run under attack, restored, and the client whose images are at stake.

    the victim's training images ─┬─► targets   attacked; only the scores see them
                                  └─► (the rest is left alone)
    the other clients' images     ───► others   an attacker may know them

With one client there are no other clients. The others are then the test images, which
nobody trained on. An audit can also ask for the test images in the order of their
file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from lightsplit.attacks import LabelledImages
from lightsplit.data import SampleSet
from lightsplit.errors import ConfigError, RunError
from lightsplit.experiments import Job, build, make_experiment, read_experiment
from lightsplit.results import RunFolder
from lightsplit.results.settings import merge
from lightsplit.runtime import Client, ClientSide
from lightsplit.seeding import numpy_generator
from lightsplit.simulation import checkpoint
from lightsplit.truths import Truth


@dataclass(frozen=True, eq=False)
class Known(LabelledImages):
    """Samples as an attacker would hold them, and as the model takes them.

    Attributes:
        inputs: of the model, of any nesting.
    """

    inputs: Any


@dataclass(frozen=True, eq=False)
class Victim:
    """A trained run with the client under attack, its images and those of others.

    Attributes:
        job: the run.
        client: which client is under attack.
        targets: its images that are to be reconstructed.
        others: samples that an attacker may know.
        rows: the targets' places in the training set.
    """

    job: Job
    client: int
    targets: Known
    others: SampleSet
    rows: Tensor

    @property
    def truth(self) -> Truth:
        """What is to be found out about the client's samples."""
        return self.job.experiment.make_task().find_truth()

    @property
    def side(self) -> ClientSide:
        """The client's modules, trained."""
        return self.actor.side

    @property
    def actor(self) -> Client:
        """The client itself."""
        return self.job.trainer.clients[self.client]


def restore(
    folder: RunFolder,
    data_dir: Path | None = None,
    *,
    device: str = "cpu",
    task: str | None = None,
) -> Job:
    """Return the job of a finished run as its last checkpoint left it."""
    job = begin_again(folder, data_dir, device=device, task=task)
    checkpoint.load(folder.checkpoint, job.trainer, job.contract.digest)
    return job


def begin_again(
    folder: RunFolder,
    data_dir: Path | None = None,
    *,
    device: str = "cpu",
    task: str | None = None,
) -> Job:
    """Return the job of a finished run as it was before its first step."""
    if "label_histogram" not in folder.read_record():
        raise RunError(
            f"{folder.path} was trained over the network, so its folder has no head to "
            "attack; audit the folder of an owner who joined with --record, or a run "
            "of `lightsplit train` with the same settings"
        )
    tables = read_experiment(folder.experiment_file)
    if task is not None:
        tables = merge(tables, {"task": {"name": task}})
    experiment = make_experiment(tables)
    if experiment.codec.name == "none":
        raise RunError(
            f"{folder.path} sent nothing (codec none): there is nothing to attack"
        )
    return build(experiment.changed(training={"device": device}), data_dir)


def choose_victim(
    job: Job, *, client: int, images: int, seed: int, others_from: str = "others"
) -> Victim:
    """Return the victim with ``images`` of its training images as targets."""
    clients = job.experiment.owners.clients
    if not 0 <= client < clients:
        raise ConfigError(f"client must be between 0 and {clients - 1}, got {client}")
    mine = shuffled(job.held[client], seed, "targets")[:images]
    train = job.dataset.train
    others = job.dataset.test if others_from == "test" else _others(job, client, seed)
    truth = job.experiment.make_task().find_truth()
    return Victim(job, client, as_known(truth, *train.batch(mine)), others, mine)


def true_labels(victim: Victim, step: int) -> Any:
    """Return the true labels of the victim's batch of ``step``.

    A client that draws its labels before training trains on other ones.
    """
    rows = victim.job.shares[victim.client].rows(step)
    return victim.job.dataset.train.batch(rows)[1]


def as_known(truth: Truth, inputs: Any, labels: Any) -> Known:
    """Return a batch as an attacker would hold it."""
    return Known(truth.samples(inputs), labels, inputs)


def shuffled(indices: Tensor, seed: int, *names: int | str) -> Tensor:
    """Return ``indices`` in a random order that depends on seed and names alone."""
    order = numpy_generator(seed, "audit", *names).permutation(len(indices))
    return indices[torch.from_numpy(order)]


def _others(job: Job, client: int, seed: int) -> SampleSet:
    held = [indices for index, indices in enumerate(job.held) if index != client]
    if not held:
        test = job.dataset.test
        rows = shuffled(torch.arange(len(test)), seed, "others")
        return cast("SampleSet", test.subset(rows))
    rows = shuffled(torch.cat(held), seed, "others")
    return cast("SampleSet", job.dataset.train.subset(rows))
