"""What the server can notice about its clients.

Importing this package enters every detector in ``DETECTORS``.
"""

from lightsplit.backdoors.detectors.base import (
    DETECTORS,
    Detector,
    Verdict,
    make_detector,
)
from lightsplit.backdoors.detectors.cosine import (
    CosineCode,
    CosineOutput,
    CosineToConsensus,
)
from lightsplit.backdoors.detectors.fltrust import FLTrust
from lightsplit.backdoors.detectors.safesplit import SafeSplit
from lightsplit.backdoors.detectors.several import make_detectors, parse_detectors
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
    "make_detector",
    "make_detectors",
    "parse_detectors",
]
