"""An audit of attacks that watch training and of others, made one after the other.

    during = true ─┬─► in training, once more: attacks that learn, label inference
                   └─► afterwards: whatever else was asked for
    during = false ──► afterwards: everything

Each stage is an audit of its own, made by ``audit_during`` or by ``audit``.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from lightsplit.attacks import LabelInference
from lightsplit.audits.attacking import Watch
from lightsplit.audits.audit import audit
from lightsplit.audits.during import audit_during
from lightsplit.audits.pausing import is_paused
from lightsplit.audits.plan import AuditOptions, expected, plan, watches
from lightsplit.audits.record import Entry, is_audited
from lightsplit.results import RunFolder


def attack(
    folder: RunFolder,
    options: AuditOptions,
    *,
    watch: Watch,
    data_dir: Path | None = None,
    only_missing: bool = False,
) -> list[Entry]:
    """Make every stage; return what was added to the record.

    With ``only_missing`` a stage that is in the record is not made again, and one that
    was interrupted in training goes on where it was saved.
    """
    entries: list[Entry] = []
    for stage in stages(options):
        ready = stage
        if only_missing:
            if is_audited(folder.read_record(), stage):
                continue
            ready = replace(stage, resume=_can_go_on(folder, stage))
        make = audit_during if stage.during else audit
        entries += make(folder, ready, watch=watch, data_dir=data_dir)
    return entries


def is_attacked(record: dict[str, Any], options: AuditOptions) -> bool:
    """Say whether every stage is in the record."""
    return all(is_audited(record, stage) for stage in stages(options))


def stages(options: AuditOptions) -> list[AuditOptions]:
    """Return the audits that ``options`` stand for, in their order."""
    expected(options, during=options.during)  # refuses what cannot be
    if not options.during or not options.attacks:
        return [options]
    after = replace(options, during=False, resume=False)
    if "all" in options.attacks:
        return [options, after]
    named = {kind.name: kind for kind, _ in plan(options)}
    watching = tuple(name for name in options.attacks if watches(named[name]))
    others = tuple(name for name in options.attacks if name not in watching)
    in_training = replace(options, attacks=watching)
    return [in_training, replace(after, attacks=others)] if others else [in_training]


def _can_go_on(folder: RunFolder, stage: AuditOptions) -> bool:
    """Say whether a saved state can be used; messages for labels are not in it."""
    infers = any(issubclass(kind, LabelInference) for kind, _ in plan(stage))
    return stage.during and not infers and is_paused(folder, stage)
