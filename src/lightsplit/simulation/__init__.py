"""A run in one process: turns or rounds over clients, checkpoints, verification."""

from lightsplit.simulation import checkpoint
from lightsplit.simulation.crew import Crew
from lightsplit.simulation.crewed_trainer import CrewedTrainer
from lightsplit.simulation.gathering import Gathering
from lightsplit.simulation.round_trainer import RoundTrainer
from lightsplit.simulation.round_worker import CopiedSide, RoundWorker
from lightsplit.simulation.shared_side import SharedSide
from lightsplit.simulation.splitfed_trainer import SplitFedTrainer
from lightsplit.simulation.trainer import Trainer, TurnEnded
from lightsplit.simulation.verification import Verification, verify

__all__ = [
    "CopiedSide",
    "Crew",
    "CrewedTrainer",
    "Gathering",
    "RoundTrainer",
    "RoundWorker",
    "SharedSide",
    "SplitFedTrainer",
    "Trainer",
    "TurnEnded",
    "Verification",
    "checkpoint",
    "verify",
]
