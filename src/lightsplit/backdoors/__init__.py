"""What a client can plant, and what either side can notice about the other."""

from lightsplit.backdoors.client_side import INSPECTORS, Inspector
from lightsplit.backdoors.clients import draw_malicious
from lightsplit.backdoors.detectors import (
    DETECTORS,
    Detector,
    Verdict,
    make_detector,
    make_detectors,
    parse_detectors,
)
from lightsplit.backdoors.evidence import (
    Evidence,
    EvidenceCollector,
    MessageReading,
    check_collectable,
    flat_weights,
)
from lightsplit.backdoors.fsha import FeatureSpaceHijacker
from lightsplit.backdoors.poisoning import PoisonedBatches, Trials
from lightsplit.backdoors.scoring import Detection, score_detection
from lightsplit.backdoors.triggers import TRIGGERS, Trigger

__all__ = [
    "DETECTORS",
    "INSPECTORS",
    "TRIGGERS",
    "Detection",
    "Detector",
    "Evidence",
    "EvidenceCollector",
    "FeatureSpaceHijacker",
    "Inspector",
    "MessageReading",
    "PoisonedBatches",
    "Trials",
    "Trigger",
    "Verdict",
    "check_collectable",
    "draw_malicious",
    "flat_weights",
    "make_detector",
    "make_detectors",
    "parse_detectors",
    "score_detection",
]
