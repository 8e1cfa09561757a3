"""The same experiment without the poison, to know what the trigger does by itself."""

from pathlib import Path

from lightsplit.backdoors import Trials
from lightsplit.experiments.backdoors import make_trigger, success_rate
from lightsplit.experiments.build import build
from lightsplit.experiments.config import Experiment, make_experiment

CLEAN = {
    "trigger": "",
    "malicious": 0.0,
    "malicious_clients": "",
    "twin": False,
    "detector": "",
    "on_flag": "warn",
}


def clean_twin(experiment: Experiment) -> Experiment:
    """Return the experiment with nobody malicious and nobody watching."""
    return make_experiment({**experiment.model_dump(), **CLEAN})


def base_rate(experiment: Experiment, data_dir: Path | None = None) -> float | None:
    """Train the clean twin to its end; return how often the trigger works on it."""
    job = build(clean_twin(experiment), data_dir)
    for _ in job.trainer.run():
        pass
    return success_rate(job.witnesses(), Trials(job.test, make_trigger(experiment)))
