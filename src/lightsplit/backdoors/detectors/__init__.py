"""Detectors, with which the server notices malicious clients.

Importing this package registers every detector in ``DETECTORS``.
"""

from lightsplit.backdoors.detectors.base import (
    DETECTORS,
    Detector,
    Verdict,
)
from lightsplit.backdoors.detectors.cosine import (
    CosineCode,
    CosineOutput,
    CosineToConsensus,
)
from lightsplit.backdoors.detectors.fltrust import FLTrust
from lightsplit.backdoors.detectors.safesplit import SafeSplit
from lightsplit.backdoors.detectors.several import check_company, make_detectors
from lightsplit.backdoors.detectors.sybils import Contra, FoolsGold

__all__ = [
    "DETECTORS",
    "Contra",
    "CosineCode",
    "CosineOutput",
    "CosineToConsensus",
    "Detector",
    "FLTrust",
    "FoolsGold",
    "SafeSplit",
    "Verdict",
    "check_company",
    "make_detectors",
]
