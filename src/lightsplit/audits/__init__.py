"""Attacks on a run, their scores and pictures."""

from lightsplit.audits.attacking import Watch
from lightsplit.audits.audit import audit
from lightsplit.audits.during import audit_during
from lightsplit.audits.plan import AuditOptions
from lightsplit.audits.record import is_audited

__all__ = ["AuditOptions", "Watch", "audit", "audit_during", "is_audited"]
