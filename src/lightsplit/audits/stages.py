"""The stages of an audit: attacks that watch training, then all others.

    during = true ─┬─► during training, once more: attacks that learn, label inference
                   └─► afterwards: all other attacks that were asked for
    during = false ──► afterwards: everything

Each stage is an audit of its own, run by ``audit_during`` or by ``audit``.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from lightsplit.attacks import Attack, Observes, Reconstructs, find_attack
from lightsplit.audits.attacking import Watch
from lightsplit.audits.audit import audit
from lightsplit.audits.during import audit_during
from lightsplit.audits.options import EVERY_ATTACK, AuditOptions
from lightsplit.audits.pausing import is_paused
from lightsplit.audits.plan import expected, looks_at_messages, plan, watches
from lightsplit.audits.record import Entry, is_audited
from lightsplit.part_options import parse_part
from lightsplit.results import RunFolder


def attack(
    folder: RunFolder,
    options: AuditOptions,
    *,
    watch: Watch,
    data_dir: Path | None = None,
    only_missing: bool = False,
) -> list[Entry]:
    """Run every stage, and return the entries that were added to the record.

    With ``only_missing`` a stage that is in the record does not run again, and a stage
    that was interrupted during training resumes from where it was saved.
    """
    entries: list[Entry] = []
    for stage in stages(options):
        ready = stage
        if only_missing:
            if is_audited(folder.read_record(), stage):
                continue
            ready = replace(stage, resume=_can_resume(folder, stage))
        make = audit_during if stage.during else audit
        entries += make(folder, ready, watch=watch, data_dir=data_dir)
    return entries


def is_attacked(record: dict[str, Any], options: AuditOptions) -> bool:
    """Return whether every stage is in the record."""
    return all(is_audited(record, stage) for stage in stages(options))


def stages(options: AuditOptions) -> list[AuditOptions]:
    """Return the audits that ``options`` stand for, in their order."""
    expected(options, during=options.during)  # refuses options that cannot be met
    if not options.during or not options.attacks:
        return [options]
    after = replace(options, during=False, resume=False)
    if EVERY_ATTACK in options.attacks:
        return [options, after]
    named = {text: find_attack(parse_part(text)[0]) for text in options.attacks}
    watching = tuple(text for text in options.attacks if watches(named[text]))
    others = tuple(text for text in options.attacks if _runs_after(named[text]))
    in_training = replace(options, attacks=watching)
    return [in_training, replace(after, attacks=others)] if others else [in_training]


def _runs_after(attack: type[Attack]) -> bool:
    """Return whether an attack has anything to do when training is over.

    An attack that observes has not: its stage includes the end of training. Any other
    attack has if it returns images, or does not watch at all.
    """
    if issubclass(attack, Observes):
        return False
    return issubclass(attack, Reconstructs) or not watches(attack)


def _can_resume(folder: RunFolder, stage: AuditOptions) -> bool:
    """Return whether a saved state can be used; messages for labels are not in it."""
    infers = any(looks_at_messages(one.attack) for one in plan(stage))
    return stage.during and not infers and is_paused(folder, stage)
