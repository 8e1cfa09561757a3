"""The cost of a cell, estimated before it runs.

Steps and bytes follow from the shapes. For the seconds, a few plain steps of the same
model are timed on copies of its example and multiplied by the samples of the run;
codec, messages and checkpoints come on top. An audit during training costs the training
once more, plus the time of its attacks; other audits are left out.
"""

import json
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from lightsplit.audits import AuditOptions
from lightsplit.audits.stages import stages
from lightsplit.experiments import Experiment, make_experiment
from lightsplit.experiments.communication import (
    Traffic,
    count_test_samples,
    foresee_traffic,
)
from lightsplit.experiments.pieces import load_dataset, load_parts
from lightsplit.experiments.planned_parts import model_tables
from lightsplit.nesting import repeated
from lightsplit.sweeps.audit_costs import learning_seconds
from lightsplit.threads import torch_threads

_BATCH = 64
_REPEATS = 3
_FORWARD_SHARE = 1 / 3  # of a training step; backward costs about twice as much


@dataclass(frozen=True)
class Estimate:
    """The steps, the bytes of all kinds and the seconds of one worker.

    Attributes:
        training_seconds: seconds of the run itself.
        audit_seconds: seconds of the run's second training under attack.
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
    experiment: Experiment,
    *,
    threads: int = 1,
    audit: AuditOptions | None = None,
    data_dir: Path | None = None,
) -> Estimate:
    """Return the cost of ``experiment`` on ``threads`` threads of this machine.

    The data of a task that does not say how much it has is loaded and counted.
    """
    is_limited = experiment.training.max_steps is not None
    epochs = 1 if is_limited else experiment.training.epochs
    once = experiment if is_limited else _one_epoch(experiment)
    train, test = _sizes(experiment, data_dir)
    traffic = _traffic(once, train, test)
    clients = experiment.owners.clients if experiment.owners.heads == "private" else 1
    tested = clients * count_test_samples(experiment, test) * _FORWARD_SHARE
    steps = epochs * traffic.steps
    with torch_threads(threads):
        rate = _seconds_per_sample(model_tables(experiment))
        seconds = rate * epochs * (traffic.samples + tested)
        again = [
            seconds + learning_seconds(experiment, stage, steps=steps)
            for stage in (stages(audit) if audit else [])
            if stage.during
        ]
    return Estimate(steps, epochs * traffic.bytes["total"], seconds, sum(again))


def _one_epoch(experiment: Experiment) -> Experiment:
    """Return one epoch of the run, without settings that do not change its bytes."""
    plain = experiment.changed(
        training={"epochs": 1, "seed": 0, "eval_every": None}, owners={"alpha": "iid"}
    )
    return replace(plain, objective={})


def _sizes(experiment: Experiment, data_dir: Path | None) -> tuple[int, int]:
    """Return the sizes of training and test set; 0 where they are published."""
    if experiment.make_task().sizes is not None:
        return 0, 0
    return _counted(json.dumps(experiment.tables()["task"]), data_dir)


@lru_cache(maxsize=64)
def _counted(task: str, data_dir: Path | None) -> tuple[int, int]:
    dataset = load_dataset(make_experiment({"task": json.loads(task)}), data_dir)
    return len(dataset.train), len(dataset.test)


@lru_cache(maxsize=4096)
def _traffic(experiment: Experiment, samples: int, test_samples: int) -> Traffic:
    return foresee_traffic(experiment, samples=samples, test_samples=test_samples)


@lru_cache(maxsize=64)
def _seconds_per_sample(tables: str) -> float:
    """Return the time of one sample in a training step of the whole model."""
    experiment = make_experiment(json.loads(tables))
    task = experiment.make_task()
    whole = load_parts(experiment).whole.train()
    inputs, labels = repeated(task.example(), _BATCH)
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        loss = task.loss(whole(inputs), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        times.append(time.perf_counter() - began)
    return min(times) / _BATCH
