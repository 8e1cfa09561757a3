"""What a curious server can learn from the messages that it received."""

from lightsplit.attacks import (  # noqa: F401 (registers them)
    decoder,
    fora,
    fora_reference,
    labels,
    linear,
    sdar,
    trivial,
    unsplit,
    whitebox,
)
from lightsplit.attacks.base import (
    ATTACKS,
    Attack,
    Budget,
    Guess,
    LabelInference,
    OnlineReconstruction,
    Progress,
    Reconstruction,
    equip,
    silent,
)
from lightsplit.attacks.knowledge import (
    Hints,
    Knowledge,
    LabelledImages,
    Pairs,
    Setup,
)
from lightsplit.attacks.label_scores import LabelScore
from lightsplit.attacks.view import Exchange, ServerView, Snapshot, readable

__all__ = [
    "ATTACKS",
    "Attack",
    "Budget",
    "Exchange",
    "Guess",
    "Hints",
    "Knowledge",
    "LabelInference",
    "LabelScore",
    "LabelledImages",
    "OnlineReconstruction",
    "Pairs",
    "Progress",
    "Reconstruction",
    "ServerView",
    "Setup",
    "Snapshot",
    "equip",
    "readable",
    "silent",
]
