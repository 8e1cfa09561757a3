"""The results of audits: one row per experiment, attack and form."""

from collections.abc import Sequence
from typing import Any

from lightsplit.reports.groups import Group, spread
from lightsplit.reports.runs import Run
from lightsplit.reports.tables import Table, Value
from lightsplit.results import (
    FACTS,
    NO_IMAGES,
    attack_label,
    columns_text,
    shown_metrics,
)

Entry = dict[str, Any]
Found = tuple[Group, Run, Entry]
NOTE = (
    "How much an honest-but-curious server learns from the messages; mean over "
    "{things}, 95 % interval below. {leaks} mean that more leaks. An attack "
    "that does not beat the trivial ones says nothing about privacy."
)
FACT_SCORES = {
    "auc": "AUC",
    "balanced_accuracy": "balanced accuracy",
    "tpr_at_1_fpr": "found at 1 % false",
}
KINDS = {  # of truth: name and title of the table, what samples are, which way leaks
    "image": (
        "audit",
        "What an attacker reconstructs",
        "images",
        "High SSIM, PSNR, correlation and re-identification and low LPIPS and MSE",
    ),
    "table": (
        "audit-rows",
        "What an attacker reconstructs of rows",
        "rows",
        "High R² and re-identification and low MSE",
    ),
    "text": (
        "audit-texts",
        "What an attacker reconstructs of texts",
        "texts",
        "High shares of tokens and re-identification",
    ),
}


def audit_tables(groups: Sequence[Group]) -> list[Table]:
    """Return the tables of reconstructions and of labels that have any rows."""
    entries = [
        (group, run, entry)
        for group in groups
        for run in group.runs
        for entry in run.audit
    ]
    labels = [found for found in entries if found[2].get("kind") == "labels"]
    facts = [found for found in entries if found[2].get("kind") in FACTS]
    tables = []
    for kind, (name, title, things, leaks) in KINDS.items():
        samples = [
            found
            for found in entries
            if found[2].get("kind") not in NO_IMAGES
            and found[2].get("truth", "image") == kind
        ]
        if samples:
            note = NOTE.format(things=things, leaks=leaks)
            tables.append(_table(name, title, note, samples))
            tables += _column_tables(samples)
    if labels:
        tables.append(_label_table(labels))
    if facts:
        tables.append(_fact_table(facts))
    return tables


def _column_tables(found: Sequence[Found]) -> list[Table]:
    """Return one row per column, for the attack on each run that explains most."""
    best: dict[int, Found] = {}
    for group, run, entry in found:
        if "columns" in entry and entry.get("kind") != "trivial":
            known = best.get(id(run))
            if known is None or _r2(entry) > _r2(known[2]):
                best[id(run)] = group, run, entry
    if not best:
        return []
    rows: list[tuple[Value, ...]] = []
    lines: list[dict[str, Any]] = []
    for group, run, entry in best.values():
        for line in columns_text(entry["columns"]):
            rows.append((*_headings(group, entry), *map(Value, line)))
        lines += [_line(group, run, entry, []) | one for one in entry["columns"]]
    return [
        Table(
            "audit-columns",
            "What an attacker reconstructs of each column",
            "The strongest attack on each run, beside a blind guess: the column's mean "
            "or its most frequent category. R² is 1 for a copy and 0 for the mean.",
            ("setting", "method", "attack", "column", "R²", "guessed", "blind guess"),
            rows,
            lines,
        )
    ]


def _r2(entry: Entry) -> float:
    return float(entry["metrics"]["r2"]["mean"])


def _label_table(found: Sequence[Found]) -> Table:
    """Return one row per attack and message, each with its own level of chance."""
    rows: list[tuple[Value, ...]] = []
    lines: list[dict[str, Any]] = []
    for group, entries in _by_attack(found):
        first = entries[0]
        score = next(iter(first["metrics"]), "accuracy")
        chance = spread(entry.get("chance") for entry in entries)
        rows.append(
            (
                *_headings(group, first),
                Value(_message_text(first)),
                Value(score),
                _metric(entries, score),
                Value("–" if chance is None else f"{chance.mean:.3g}"),
            )
        )
    for group, run, entry in found:
        figures = _line(group, run, entry, list(entry["metrics"]))
        more = {name: entry.get(name) for name in ("message", "step", "chance")}
        lines.append({**figures, **more})
    return Table(
        "labels",
        "What an attacker learns about the labels",
        "Labels guessed from each of the messages, beside the rate of blind guessing. "
        "They never left their clients.",
        ("setting", "method", "attack", "message", "score", "reached", "chance"),
        rows,
        lines,
    )


def _fact_table(found: Sequence[Found]) -> Table:
    """Return one row per attack and message, with all its scores."""
    rows: list[tuple[Value, ...]] = []
    for group, entries in _by_attack(found):
        first = entries[0]
        figures = (_metric(entries, name) for name in FACT_SCORES)
        about = Value(str(first["kind"]))
        message = Value(_message_text(first))
        blind = first["metrics"]["tpr_at_1_fpr"]["chance"]
        rows.append(
            (
                *_headings(group, first),
                *(about, message, *figures),
                Value(f"{blind:.3g}", blind),
            )
        )
    lines = [
        _line(group, run, entry, list(FACT_SCORES)) | {"message": entry.get("message")}
        for group, run, entry in found
    ]
    return Table(
        "facts",
        "Who was a member, and what has which property",
        "AUC, balanced accuracy, and the share of true cases found when at most 1 % "
        "of the others are called true as well. Blind guessing gives 0.5, 0.5 and the "
        "last column, which is above 0.01 where there are few others.",
        (
            *("setting", "method", "attack", "about", "message"),
            *(*FACT_SCORES.values(), "found blindly"),
        ),
        rows,
        lines,
    )


def _message_text(entry: Entry) -> str:
    message = str(entry.get("message", "")).replace("_", " ")
    return f"{message} at step {entry['step']}" if entry.get("step") else message


def _by_attack(found: Sequence[Found]) -> list[tuple[Group, list[Entry]]]:
    """Return the entries grouped so that members differ only in the seed."""
    together: dict[tuple[Any, ...], tuple[Group, list[Entry]]] = {}
    for group, _, entry in found:
        names = ("form", "message", "step", "budget", "client", "images")
        own = (entry.get(name) for name in names)
        key = (id(group), attack_label(entry), *own)
        together.setdefault(key, (group, []))[1].append(entry)
    return list(together.values())


def _headings(group: Group, entry: Entry) -> tuple[Value, Value, Value]:
    name = f"{attack_label(entry)} {entry.get('form', '')}".strip()
    return (
        Value(group.labels["task"], below=group.labels["setting"]),
        Value(group.method),
        Value(name, below=entry.get("threat_model", "")),
    )


def _table(
    name: str,
    title: str,
    note: str,
    entries: Sequence[Found],
) -> Table:
    known = shown_metrics(m for _, _, entry in entries for m in entry["metrics"])
    lines = [_line(group, run, entry, known) for group, run, entry in entries]
    rows = []
    for group, found in _by_attack(entries):
        is_suspect = any(entry.get("beats_trivial") is False for entry in found)
        verdict = Value(_verdict(found), tone="bad" if is_suspect else "")
        figures = (_metric(found, metric) for metric in known)
        rows.append((*_headings(group, found[0]), verdict, *figures))
    columns = ("setting", "method", "attack", "beats trivial", *known)
    return Table(name, title, note, columns, rows, lines)


def _verdict(entries: Sequence[Entry]) -> str:
    verdicts = {entry.get("beats_trivial") for entry in entries}
    if False in verdicts:
        return "no"
    return "yes" if True in verdicts else "–"


def _metric(entries: Sequence[Entry], name: str) -> Value:
    """Return the mean over seeds, and the widest interval below it."""
    figures = [entry["metrics"].get(name, {}) for entry in entries]
    mean = spread(figure.get("mean") for figure in figures)
    if mean is None:
        return Value("–", -1e9)
    lows = [f["low"] for f in figures if f.get("low") is not None]
    highs = [f["high"] for f in figures if f.get("high") is not None]
    below = f"{min(lows):.3g} … {max(highs):.3g}" if lows and highs else ""
    return Value(f"{mean.mean:.3g}", mean.mean, below=below)


def _line(group: Group, run: Run, entry: Entry, metrics: list[str]) -> dict[str, Any]:
    own = run.settings
    names = ("dataset", "cut", "heads", "clients", "alpha", "codec", "ratio", "wcc")
    figures = {
        f"{metric}_{kind}": entry["metrics"].get(metric, {}).get(kind)
        for metric in metrics
        for kind in ("mean", "low", "high", "worst")
    }
    return {
        **{name: own.get(name, "") for name in (*names, "seed")},
        "test_accuracy": run.record.get("test_accuracy"),
        "step_bytes_per_sample": group.step_bytes,
        "attack": attack_label(entry),
        **{k: entry.get(k) for k in ("form", "kind", "budget", "images")},
        "beats_trivial": entry.get("beats_trivial"),
        **figures,
    }
