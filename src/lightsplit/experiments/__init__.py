"""From settings to a finished run; the only place where names become parts."""

from lightsplit.experiments.build import Job, build
from lightsplit.experiments.config import (
    Experiment,
    from_settings,
    make_experiment,
    read_experiment,
)
from lightsplit.experiments.record import make_record
from lightsplit.experiments.run import run
from lightsplit.results import RECORD_VERSION

__all__ = [
    "RECORD_VERSION",
    "Experiment",
    "Job",
    "build",
    "from_settings",
    "make_experiment",
    "make_record",
    "read_experiment",
    "run",
]
