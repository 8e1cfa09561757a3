"""The run under attack, restored, and the client whose images are at stake.

    the victim's training images ─┬─► targets   attacked; only the scores see them
                                  └─► (the rest is left alone)
    the other clients' images     ───► others   what an attacker may know

With one client there are no others; then they are the test images, which nobody
trained on. An audit can also ask for the test images, in the order of their file.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from lightsplit.attacks import LabelledImages
from lightsplit.data import Samples
from lightsplit.errors import ConfigError, RunError
from lightsplit.experiments import Job, build, make_experiment, read_experiment
from lightsplit.results import RunFolder
from lightsplit.runtime import Client, ClientSide
from lightsplit.seeding import numpy_generator
from lightsplit.training import checkpoint


@dataclass(frozen=True, eq=False)
class Victim:
    """A trained run with the client under attack, its images and everyone else's."""

    job: Job
    client: int
    targets: LabelledImages
    others: Samples

    @property
    def side(self) -> ClientSide:
        """The client's modules, trained."""
        return self.actor.side

    @property
    def actor(self) -> Client:
        """The client itself."""
        return self.job.trainer.clients[self.client]


def restore(
    folder: RunFolder, data_dir: Path | None = None, *, device: str = "cpu"
) -> Job:
    """Return the job of a finished run as its last checkpoint left it."""
    job = begin_again(folder, data_dir, device=device)
    checkpoint.load(folder.checkpoint, job.trainer, job.contract.digest)
    return job


def begin_again(
    folder: RunFolder, data_dir: Path | None = None, *, device: str = "cpu"
) -> Job:
    """Return the job of a finished run as it was before its first step."""
    if "label_histogram" not in folder.read_record():
        raise RunError(
            f"{folder.path} was trained over the network: its server never had a head. "
            "Audit a run of `lightsplit train` with the same settings"
        )
    settings = read_experiment(folder.experiment_file) | {"device": device}
    return build(make_experiment(settings), data_dir)


def choose_victim(
    job: Job, *, client: int, images: int, seed: int, others_from: str = "others"
) -> Victim:
    """Return the victim with ``images`` of its training images as targets."""
    clients = job.experiment.clients
    if not 0 <= client < clients:
        raise ConfigError(f"client must be between 0 and {clients - 1}, got {client}")
    mine = shuffled(job.held[client], seed, "targets")[:images]
    train = job.dataset.train
    others = job.dataset.test if others_from == "test" else _others(job, client, seed)
    return Victim(job, client, as_images(train, mine), others)


def as_images(samples: Samples, indices: Tensor) -> LabelledImages:
    """Return the samples at ``indices`` as an attacker would hold them."""
    return LabelledImages(*samples.batch(indices))


def shuffled(indices: Tensor, seed: int, *names: int | str) -> Tensor:
    """Return ``indices`` in a random order that depends on seed and names alone."""
    order = numpy_generator(seed, "audit", *names).permutation(len(indices))
    return indices[torch.from_numpy(order)]


def _others(job: Job, client: int, seed: int) -> Samples:
    held = [indices for index, indices in enumerate(job.held) if index != client]
    if not held:
        test = job.dataset.test
        return test.subset(shuffled(torch.arange(len(test)), seed, "others"))
    return job.dataset.train.subset(shuffled(torch.cat(held), seed, "others"))
