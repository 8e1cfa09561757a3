"""Turns and rounds over clients, evaluation, checkpoints, verification."""

from lightsplit.training import checkpoint
from lightsplit.training.evaluation import EVALUATION_BATCH, Evaluation, evaluate
from lightsplit.training.guard import Guard, Ruling
from lightsplit.training.progress import Progress
from lightsplit.training.schedule import Schedule, Turn
from lightsplit.training.trainer import Trainer, TurnDone
from lightsplit.training.verification import Verification, verify

__all__ = [
    "EVALUATION_BATCH",
    "Evaluation",
    "Guard",
    "Progress",
    "Ruling",
    "Schedule",
    "Trainer",
    "Turn",
    "TurnDone",
    "Verification",
    "checkpoint",
    "evaluate",
    "verify",
]
