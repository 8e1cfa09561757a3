"""The same experiment without poison, to measure the trigger's own effect."""

from pathlib import Path

from lightsplit.backdoors import Trials
from lightsplit.experiments.backdoors import make_trigger, success_rate
from lightsplit.experiments.build import build
from lightsplit.experiments.config import Experiment, make_experiment

POISON = ("backdoor", "detector", "guard")  # the tables to drop


def clean_twin(experiment: Experiment) -> Experiment:
    """Return the experiment without malicious clients and without detectors."""
    tables = experiment.tables()
    return make_experiment({k: v for k, v in tables.items() if k not in POISON})


def base_rate(experiment: Experiment, data_dir: Path | None = None) -> float | None:
    """Train the clean twin to its end and return the trigger's success rate on it."""
    job = build(clean_twin(experiment), data_dir)
    for _ in job.trainer.run():
        pass
    return success_rate(job.witnesses(), Trials(job.test, make_trigger(experiment)))
