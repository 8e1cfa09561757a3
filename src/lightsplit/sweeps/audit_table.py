"""The table [audit] of a sweep file: how every cell is attacked."""

from typing import Any

from lightsplit.audits import AuditOptions
from lightsplit.audits.stages import stages
from lightsplit.errors import ConfigError

AUDIT_KEYS = (
    "attacks",
    "during",
    "budget",
    "form",
    "images",
    "auxiliary",
    "auxiliary_from",
    "client",
    "seed",
    "score_every",
    "save_every",
)


def make_audit_options(table: dict[str, Any]) -> AuditOptions | None:
    """Return how every cell is attacked; None if the sweep only trains."""
    if not table:
        return None
    usual = AuditOptions()
    for key, value in table.items():
        kind = list if key == "attacks" else type(getattr(usual, key))
        if type(value) is not kind:
            raise ConfigError(f"audit.{key}: expected {kind.__name__}, got {value!r}")
    options = AuditOptions(**{**table, "attacks": tuple(table.get("attacks", ()))})
    stages(options)  # refuses what cannot be
    return options
