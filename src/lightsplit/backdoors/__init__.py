"""Backdoors that clients plant, and detection of misbehaviour on either side."""

from lightsplit.backdoors.client_side import INSPECTORS, Inspector
from lightsplit.backdoors.clients import draw_malicious
from lightsplit.backdoors.detectors import (
    DETECTORS,
    Detector,
    Verdict,
    check_company,
    make_detectors,
)
from lightsplit.backdoors.evidence import (
    Evidence,
    EvidenceCollector,
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
    "PoisonedBatches",
    "Trials",
    "Trigger",
    "Verdict",
    "check_collectable",
    "check_company",
    "draw_malicious",
    "flat_weights",
    "make_detectors",
    "score_detection",
]
