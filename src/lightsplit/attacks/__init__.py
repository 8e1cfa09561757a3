"""Attacks: how much a curious server can learn from the messages it received."""

from lightsplit.attacks import (  # noqa: F401 (importing registers them)
    decoder,
    exact_table,
    first_weights,
    fora,
    fora_reference,
    label_classifier,
    labelled_decoder,
    labels,
    linear,
    refined_decoder,
    row_inversion,
    sdar,
    token_counts,
    trivial,
    trivial_texts,
    unsplit,
    whitebox,
)
from lightsplit.attacks.base import (
    ATTACKS,
    Attack,
    Budget,
    Kind,
    Progress,
    equip,
    find_attack,
    silent,
)
from lightsplit.attacks.capabilities import (
    TARGETS,
    Guess,
    InfersLabels,
    Observes,
    Reconstructs,
    capabilities,
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
    "TARGETS",
    "Attack",
    "Budget",
    "Exchange",
    "Guess",
    "Hints",
    "InfersLabels",
    "Kind",
    "Knowledge",
    "LabelScore",
    "LabelledImages",
    "Observes",
    "Pairs",
    "Progress",
    "Reconstructs",
    "ServerView",
    "Setup",
    "Snapshot",
    "capabilities",
    "equip",
    "find_attack",
    "readable",
    "silent",
]
