"""A run in one process: turns over clients, checkpoints, verification."""

from lightsplit.simulation import checkpoint
from lightsplit.simulation.trainer import Trainer, TurnEnded
from lightsplit.simulation.verification import Verification, verify

__all__ = [
    "Trainer",
    "TurnEnded",
    "Verification",
    "checkpoint",
    "verify",
]
