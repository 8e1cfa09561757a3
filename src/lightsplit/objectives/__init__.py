"""Objectives: terms that a client adds to its own loss.

Importing this package registers every objective in ``OBJECTIVES``.
"""

from lightsplit.objectives.base import (
    OBJECTIVES,
    ClientView,
    Covered,
    Objective,
    ServerPart,
    WeightedObjective,
    cover,
)
from lightsplit.objectives.bit_balance import BitBalance
from lightsplit.objectives.bit_flips import BitFlips
from lightsplit.objectives.cem import ConditionalEntropyMaximisation
from lightsplit.objectives.class_codes import ClassCodes
from lightsplit.objectives.conditional_entropy import ConditionalEntropy
from lightsplit.objectives.disco import Disco
from lightsplit.objectives.dp import DifferentialPrivacy
from lightsplit.objectives.noise import Noise
from lightsplit.objectives.nopeek import NoPeek, distance_correlation
from lightsplit.objectives.patch_shuffle import PatchShuffle
from lightsplit.objectives.shredder import Shredder
from lightsplit.objectives.wcc import WithinClassCompaction, within_class_compaction

__all__ = [
    "OBJECTIVES",
    "BitBalance",
    "BitFlips",
    "ClassCodes",
    "ClientView",
    "ConditionalEntropy",
    "ConditionalEntropyMaximisation",
    "Covered",
    "DifferentialPrivacy",
    "Disco",
    "NoPeek",
    "Noise",
    "Objective",
    "PatchShuffle",
    "ServerPart",
    "Shredder",
    "WeightedObjective",
    "WithinClassCompaction",
    "cover",
    "distance_correlation",
    "within_class_compaction",
]
