"""Attacks on a run, their scores and pictures."""

from lightsplit.audits.attacking import Interrupted, Watch
from lightsplit.audits.audit import audit
from lightsplit.audits.during import audit_during
from lightsplit.audits.options import AuditOptions
from lightsplit.audits.stages import attack, is_attacked

__all__ = [
    "AuditOptions",
    "Interrupted",
    "Watch",
    "attack",
    "audit",
    "audit_during",
    "is_attacked",
]
