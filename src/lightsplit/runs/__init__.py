"""The parts of a run in one process or over a network: schedule, progress, rules."""

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
    "Evaluation",
    "Guard",
    "Monitor",
    "Progress",
    "Ruling",
    "RunState",
    "Schedule",
    "Scoring",
    "Turn",
    "evaluate",
]
