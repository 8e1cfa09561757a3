"""What a cell will cost, before it is run.

Steps and bytes come from the shapes. Seconds are those of a few plain steps of the same
model on random images, measured here and now and multiplied by the samples of the run;
what codec, messages and checkpoints add is not in it. An audit in training costs the
same training once more and what its attacks take beside it; other audits are left out.
"""

import time
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch.nn.functional import cross_entropy

from lightsplit.audits import AuditOptions
from lightsplit.audits.stages import stages
from lightsplit.experiments import Experiment, make_experiment
from lightsplit.experiments.communication import (
    Traffic,
    count_test_samples,
    foresee_traffic,
)
from lightsplit.experiments.config import FACTS
from lightsplit.experiments.pieces import load_parts
from lightsplit.sweeps.audit_costs import learning_seconds
from lightsplit.threads import torch_threads

_BATCH = 64
_REPEATS = 3
_FORWARD_SHARE = 1 / 3  # of a training step: backward costs about twice as much


@dataclass(frozen=True)
class Estimate:
    """Steps, bytes of all kinds, and seconds of one worker.

    Attributes:
        training_seconds: of the run itself.
        audit_seconds: of the run's second training under attack.
    """

    steps: int
    bytes: int
    training_seconds: float
    audit_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """Of both."""
        return self.training_seconds + self.audit_seconds


def estimate(
    experiment: Experiment, *, threads: int = 1, audit: AuditOptions | None = None
) -> Estimate:
    """Return what ``experiment`` will cost on so many threads of this machine."""
    epochs = 1 if experiment.max_steps else experiment.epochs
    once = experiment if experiment.max_steps else _one_epoch(experiment)
    traffic = _traffic(once)
    clients = experiment.clients if experiment.heads == "private" else 1
    tested = clients * count_test_samples(experiment) * _FORWARD_SHARE
    steps = epochs * traffic.steps
    with torch_threads(threads):
        rate = _seconds_per_sample(experiment.dataset, experiment.model, experiment.cut)
        seconds = rate * epochs * (traffic.samples + tested)
        again = [
            seconds + learning_seconds(experiment, stage, steps=steps)
            for stage in (stages(audit) if audit else [])
            if stage.during
        ]
    return Estimate(steps, epochs * traffic.bytes["total"], seconds, sum(again))


def _one_epoch(experiment: Experiment) -> Experiment:
    """Return the run without what its bytes per epoch do not depend on."""
    plain = {"epochs": 1, "seed": 0, "wcc": 0.0, "alpha": 0.0, "eval_every": 0}
    return experiment.model_copy(update=plain)


@lru_cache(maxsize=4096)
def _traffic(experiment: Experiment) -> Traffic:
    return foresee_traffic(experiment)


@lru_cache(maxsize=64)
def _seconds_per_sample(dataset: str, model: str, cut: str) -> float:
    """Return the time of one sample in a training step of the whole model."""
    settings = {"dataset": dataset, "model": model, "cut": cut}
    whole = load_parts(make_experiment(settings)).whole.train()
    shape, classes = FACTS[dataset]
    images, labels = torch.rand(_BATCH, *shape), torch.arange(_BATCH) % classes
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        loss = cross_entropy(whole(images), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        times.append(time.perf_counter() - began)
    return min(times) / _BATCH
