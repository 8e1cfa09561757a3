"""An audit of attacks that watch training and of others, made one after the other.

    during = true ─┬─► in training, once more: attacks that learn, label inference
                   └─► afterwards: whatever else was asked for
    during = false ──► afterwards: everything

What is in the run's record already is not made again, and what was interrupted in
training goes on where it was saved.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from lightsplit.attacks import LabelInference, OnlineReconstruction
from lightsplit.audits.attacking import Watch
from lightsplit.audits.audit import audit
from lightsplit.audits.during import audit_during
from lightsplit.audits.pausing import is_paused
from lightsplit.audits.plan import AuditOptions, plan, watches
from lightsplit.audits.record import Entry, is_audited
from lightsplit.errors import ConfigError
from lightsplit.results import RunFolder


def attack(
    folder: RunFolder,
    options: AuditOptions,
    *,
    watch: Watch,
    data_dir: Path | None = None,
) -> list[Entry]:
    """Make every stage that is not in the record yet; return what was added."""
    entries: list[Entry] = []
    for stage in stages(options):
        if is_audited(folder.read_record(), stage):
            continue
        make = audit_during if stage.during else audit
        ready = replace(stage, resume=_can_go_on(folder, stage))
        entries += make(folder, ready, watch=watch, data_dir=data_dir)
    return entries


def is_attacked(record: dict[str, Any], options: AuditOptions) -> bool:
    """Say whether every stage is in the record."""
    return all(is_audited(record, stage) for stage in stages(options))


def stages(options: AuditOptions) -> list[AuditOptions]:
    """Return the audits that ``options`` stand for, in their order."""
    if not options.during:
        _refuse_learners(options)
        return [options]
    named = [kind for kind, _ in plan(options) if kind.name in options.attacks]
    watching = {kind.name for kind in named if watches(kind)}
    if not watching:
        raise ConfigError("during: name an attack that learns or infers labels")
    after = {kind.name for kind in named} - watching
    return [
        replace(options, attacks=tuple(sorted(names)), during=during)
        for names, during in ((watching, True), (after, False))
        if names
    ]


def _refuse_learners(options: AuditOptions) -> None:
    for kind, _ in plan(options):
        if issubclass(kind, OnlineReconstruction) and kind.name in options.attacks:
            raise ConfigError(f"{kind.name} learns in training: it needs during = true")


def _can_go_on(folder: RunFolder, stage: AuditOptions) -> bool:
    """Say whether a saved state can be used; messages for labels are not in it."""
    infers = any(issubclass(kind, LabelInference) for kind, _ in plan(stage))
    return stage.during and not infers and is_paused(folder, stage)
