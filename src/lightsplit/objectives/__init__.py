"""Objectives: terms that a client adds to its own loss.

Importing this package registers every objective in ``OBJECTIVES``.
"""

from lightsplit.objectives.base import (
    OBJECTIVES,
    ClientView,
    Objective,
    WeightedObjective,
)
from lightsplit.objectives.bit_balance import BitBalance
from lightsplit.objectives.bit_flips import BitFlips
from lightsplit.objectives.cem import ConditionalEntropyMaximisation
from lightsplit.objectives.class_codes import ClassCodes
from lightsplit.objectives.conditional_entropy import ConditionalEntropy
from lightsplit.objectives.noise import Noise, gaussian_epsilon
from lightsplit.objectives.nopeek import NoPeek, distance_correlation
from lightsplit.objectives.wcc import WithinClassCompaction, within_class_compaction

__all__ = [
    "OBJECTIVES",
    "BitBalance",
    "BitFlips",
    "ClassCodes",
    "ClientView",
    "ConditionalEntropy",
    "ConditionalEntropyMaximisation",
    "NoPeek",
    "Noise",
    "Objective",
    "WeightedObjective",
    "WithinClassCompaction",
    "distance_correlation",
    "gaussian_epsilon",
    "within_class_compaction",
]
