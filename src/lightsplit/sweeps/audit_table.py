"""The table [audit] of a sweep file: how to attack every cell.

[audit]
attacks = ["sdar:wcc=0.01", "linear"]     names, with options if wanted
during = true                             and the other options of an audit
"""

from typing import Any

from lightsplit.audits import AuditOptions
from lightsplit.audits.options import NEVER
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
_MAYBE_NEVER = ("score_every", "save_every")


def make_audit_options(table: dict[str, Any]) -> AuditOptions | None:
    """Return the audit options of every cell; None if the sweep only trains."""
    if not table:
        return None
    usual = AuditOptions()
    never = {key for key in _MAYBE_NEVER if table.get(key) == NEVER}
    for key, value in table.items():
        if key in never:
            continue
        default = getattr(usual, key)
        kind = list if key == "attacks" else int if default is None else type(default)
        if type(value) is not kind:
            raise ConfigError(f"audit.{key}: expected {kind.__name__}, got {value!r}")
    for name in table.get("attacks", ()):
        if not isinstance(name, str):
            raise ConfigError(f"audit.attacks: expected names of attacks, got {name!r}")
    given = {**table, **dict.fromkeys(never)}
    options = AuditOptions(**{**given, "attacks": tuple(table.get("attacks", ()))})
    stages(options)  # refuses options that contradict each other
    return options
