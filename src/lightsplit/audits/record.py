"""An audit's figures in record.json (docs/record.md).

audit      one entry per attack, form, options, message, step, budget, client, seed and
           targets; a new entry replaces the old one of the same key
leakage    one entry per ladder, that is per client, seed and targets: the worst of all
           its attacks, metric by metric. It is the claim about a codec
"""

from typing import Any

from lightsplit.attacks import Attack, Reconstructs
from lightsplit.audits.options import AuditOptions
from lightsplit.audits.plan import Planned, expected, looks_at_messages
from lightsplit.metrics import METRICS
from lightsplit.results import RunFolder, attack_label, ladders
from lightsplit.results.ladder import SAME
from lightsplit.truths import ImageTruth

Entry = dict[str, Any]
KEY = ("attack", "form", "message", "step", "budget", "client", "seed", "targets")


def keep(folder: RunFolder, entry: Entry) -> Entry:
    """Add an entry to the run's record, update its leakage, and return the entry."""
    record = folder.read_record()
    others = [old for old in record.get("audit", []) if _key(old) != _key(entry)]
    entries = [*others, entry]
    folder.write_record({**record, "audit": entries, "leakage": leakage(entries)})
    return entry


def leakage(entries: list[Entry]) -> list[Entry]:
    """Return the worst of every ladder: for each metric the attack that gets most.

    A published attack that gets more than the oracles is the worst, too. An attack that
    does not return images or reads no code is on no ladder.
    """
    return [
        {
            **{name: ladder[0].get(name) for name in SAME},
            "attacks": sorted({_name(entry) for entry in ladder}),
            "not_converged": sorted(
                {_name(entry) for entry in ladder if entry.get("converged") is False}
            ),
            "metrics": _worst_by_metric(ladder),
        }
        for ladder in ladders(entries)
    ]


def _worst_by_metric(ladder: list[Entry]) -> dict[str, Entry]:
    names = {name for entry in ladder for name in entry["metrics"]}
    return {name: _worst(name, ladder) for name in sorted(names & set(METRICS.names()))}


def is_audited(record: dict[str, Any], options: AuditOptions) -> bool:
    """Return whether every attack that ``options`` ask for has an entry already.

    Where nothing was sent there is nothing to attack.
    """
    codec = record.get("experiment", {}).get("codec", {})
    if codec.get("name") == "none":
        return True
    same = ("budget", "client", "seed")
    entries = [
        entry
        for entry in record.get("audit", [])
        if all(entry.get(name) == getattr(options, name) for name in same)
        and _was_asked(entry, options)
    ]
    last = record.get("steps") if options.during else None
    kind = next((e["truth"] for e in entries if "truth" in e), ImageTruth.kind)
    return all(
        _is_complete([e for e in entries if _is_of(e, one)], one, options, last)
        for one in expected(options, during=options.during)
        if options.names(one.attack.name)
        or (_takes(one.attack, kind) and _has_labels(one.attack, record))
    )


def _was_asked(entry: Entry, options: AuditOptions) -> bool:
    """Return whether an entry covers as many images as the options ask for.

    A run may have fewer. An entry of an earlier version says only how many there were.
    """
    if "asked" in entry:
        return bool(entry["asked"] == options.asked)
    return "message" in entry or entry.get("images") == options.target_count


def _takes(attack: type[Attack], kind: str) -> bool:
    """Return whether an attack takes all samples of this kind."""
    return kind in attack.truths and attack.takes_any_shape()


def _has_labels(attack: type[Attack], record: dict[str, Any]) -> bool:
    """Return whether a run has the classes that an attack needs, if it needs any."""
    has_classes = record.get("label_histogram", ()) is not None
    return has_classes or not {"classes", "labels", "hints"} & set(attack.needs)


def _is_of(entry: Entry, planned: Planned) -> bool:
    """Return whether an entry is of a planned attack."""
    own = entry["attack"], entry["form"], entry.get("options") or {}
    return own == (planned.attack.name, planned.form, planned.options)


def _is_complete(
    entries: list[Entry], planned: Planned, options: AuditOptions, last: int | None
) -> bool:
    """Return whether an attack's entries are all there.

    During training an attack that looks at messages gives labels up to the last step,
    and its images come after training, if it returns any.
    """
    if not looks_at_messages(planned.attack):
        return bool(entries)
    has_labels = any("message" in e and e.get("step") == last for e in entries)
    if options.during or not issubclass(planned.attack, Reconstructs):
        return has_labels
    return has_labels and any("message" not in e for e in entries)


def _worst(name: str, ladder: list[Entry]) -> Entry:
    choose = max if METRICS.create(name).higher_is_better else min
    having = [entry for entry in ladder if name in entry["metrics"]]
    entry = choose(having, key=lambda entry: entry["metrics"][name]["mean"])
    return {"attack": _name(entry), **entry["metrics"][name]}


def _name(entry: Entry) -> str:
    """Return the attack with its options and its form."""
    return f"{attack_label(entry)} {entry.get('form') or ''}".strip()


def _key(entry: Entry) -> tuple[Any, ...]:
    return (*(entry.get(name) for name in KEY), entry.get("options") or {})
