"""An audit's figures in record.json (docs/record.md).

audit      one entry per attack, form, message, step, budget and client; a new one
           replaces the old one of the same key
leakage    the worst of the oracle ladder, metric by metric: what is claimed of a codec
"""

from typing import Any

from lightsplit.attacks import Attack
from lightsplit.audits.plan import AuditOptions, expected
from lightsplit.metrics import METRICS
from lightsplit.results import RunFolder

Entry = dict[str, Any]
KEY = ("attack", "form", "message", "step", "budget", "client")


def keep(folder: RunFolder, entry: Entry) -> Entry:
    """Add an entry to the run's record, bring its leakage up to date, return it."""
    record = folder.read_record()
    others = [old for old in record.get("audit", []) if _key(old) != _key(entry)]
    entries = [*others, entry]
    folder.write_record({**record, "audit": entries, "leakage": leakage(entries)})
    return entry


def leakage(entries: list[Entry]) -> dict[str, dict[str, Any]]:
    """Return, for each metric, the figures of the oracle that gets the most."""
    oracles = [entry for entry in entries if entry["kind"] == "oracle"]
    names = {name for entry in oracles for name in entry["metrics"]}
    return {
        name: _worst(name, oracles) for name in sorted(names & set(METRICS.names()))
    }


def is_audited(record: dict[str, Any], options: AuditOptions) -> bool:
    """Say whether every attack that ``options`` ask for has an entry already."""
    same = ("budget", "client", "seed")
    entries = [
        entry
        for entry in record.get("audit", [])
        if all(entry.get(name) == getattr(options, name) for name in same)
    ]
    last = record.get("steps") if options.during else None
    return all(
        any(_is_of(entry, kind, form, last) for entry in entries)
        for kind, form in expected(options, during=options.during)
        if kind.name in options.attacks or kind.takes_any_shape()
    )


def _is_of(entry: Entry, attack: type[Attack], form: str, last: int | None) -> bool:
    """Say whether an entry is the attack's; labels are inferred up to a last step."""
    if (entry["attack"], entry["form"]) != (attack.name, form):
        return False
    return attack.kind != "labels" or entry.get("step") == last


def _worst(name: str, oracles: list[Entry]) -> dict[str, Any]:
    choose = max if METRICS.create(name).higher_is_better else min
    having = [entry for entry in oracles if name in entry["metrics"]]
    entry = choose(having, key=lambda entry: entry["metrics"][name]["mean"])
    return {"attack": entry["attack"], **entry["metrics"][name]}


def _key(entry: Entry) -> tuple[Any, ...]:
    return tuple(entry.get(name) for name in KEY)
