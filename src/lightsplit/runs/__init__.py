"""The parts of a run in one process or over a network: schedule, progress, rules."""

from lightsplit.runs.callbacks import Callback, Callbacks, RunStart, scalars
from lightsplit.runs.evaluation import (
    EVALUATION_BATCH,
    Evaluation,
    Monitor,
    Scoring,
    evaluate,
)
from lightsplit.runs.guard import Guard, Ruling
from lightsplit.runs.progress import Progress
from lightsplit.runs.run_state import RunState
from lightsplit.runs.schedule import Schedule, Turn

__all__ = [
    "EVALUATION_BATCH",
    "Callback",
    "Callbacks",
    "Evaluation",
    "Guard",
    "Monitor",
    "Progress",
    "Ruling",
    "RunStart",
    "RunState",
    "Schedule",
    "Scoring",
    "Turn",
    "evaluate",
    "scalars",
]
