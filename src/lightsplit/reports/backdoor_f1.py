"""F1 of detection in the paper's shape: one factor changed at a time.

The paper has CIFAR-10 and mean outputs, and one figure for lightsplit-f and -l. On
another dataset its figure stands below ours all the same, marked as CIFAR-10's: only
the direction can be compared.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lightsplit.reports.detections import (
    FACTORS,
    Family,
    detectors,
    factor_order,
    factor_text,
    over_seeds,
)
from lightsplit.reports.groups import Group, Spread
from lightsplit.reports.paper import read_figures, value_beside
from lightsplit.reports.tables import Table, Value

NAME = "backdoors"  # in data/paper.csv
_NOTE = (
    "F1 of the flags at the last verdict, mean over seeds; one factor differs from the "
    "baseline at a time. The paper's figures are of CIFAR-10 and mean outputs, one for "
    "both LightSplit codecs, its baseline over three seeds and the rest under one. A "
    "malicious client that stands out but stays below the threshold counts as 0."
)
Column = tuple[str, str]  # detector, method
Figures = dict[tuple[Any, ...], dict[str, Any]]


def f1_table(families: Sequence[Family]) -> Table:
    """Return one row per changed factor, one column per detector and codec."""
    poisoned = [family for family in families if family.is_poisoned]
    groups = [group for family in poisoned for group in family.groups]
    columns: list[Column] = [
        (detector, method)
        for detector in detectors(groups)
        for method in dict.fromkeys(group.method for group in groups)
    ]
    published = _published()
    rows: list[tuple[Value, ...]] = []
    lines: list[dict[str, Any]] = []
    for family in poisoned if columns else []:
        for members in _by_factors(family):
            heading = _heading(family, members[0], is_only=len(poisoned) == 1)
            found = [_line(members, column, published) for column in columns]
            rows.append((*heading, *map(_value, found)))
            lines += found
    names = ("setting", "value", *(f"{d} {method}" for d, method in columns))
    title = "Backdoors: F1 of detection"
    return Table("backdoor-f1", title, _NOTE, names, rows, lines)


def _published() -> Figures:
    """Return the paper's figures by what they are about."""
    return {
        _key(line, line["detector"]): line
        for line in read_figures()
        if line["table"] == NAME
    }


def _key(settings: dict[str, Any], detector: str) -> tuple[Any, ...]:
    return (detector, *(settings[name] for name in ("codec", "ratio", *FACTORS)))


def _by_factors(family: Family) -> list[list[Group]]:
    """Return the groups of each combination of factors, the baseline first."""
    found: dict[tuple[float, ...], list[Group]] = {}
    for group in family.groups:
        place = tuple(group.settings[name] for name in FACTORS)
        found.setdefault(place, []).append(group)

    def order(members: list[Group]) -> tuple[Any, ...]:
        changed = family.changed(members[0])
        places = [list(FACTORS).index(name) for name in changed]
        own = members[0].settings
        return len(changed), places, [factor_order(n, own[n]) for n in FACTORS]

    return sorted(found.values(), key=order)


def _heading(family: Family, group: Group, *, is_only: bool) -> tuple[Value, Value]:
    changed = family.changed(group)
    setting = ", ".join(FACTORS[name] for name in changed) or "baseline"
    shown = changed or tuple(FACTORS)
    texts = [factor_text(name, group.settings[name]) for name in shown]
    if not changed:
        symbols = (FACTORS[name].split()[0] for name in shown)
        texts = [f"{s}={text}" for s, text in zip(symbols, texts, strict=True)]
    below = "" if is_only else family.title
    return Value(setting, below=below), Value(", ".join(texts))


def _line(
    members: Sequence[Group], column: Column, published: Figures
) -> dict[str, Any]:
    """Return the figure of one detector and method among groups of equal factors."""
    detector, method = column
    own = [group for group in members if group.method == method]
    spreads = (over_seeds(group, detector, lambda sight: sight.f1) for group in own)
    found = next(filter(None, spreads), None)
    settings = own[0].settings if own else members[0].settings
    paper = published.get(_key(settings, detector), {}) if own else {}
    return {
        "dataset": settings["dataset"],
        **{name: settings[name] for name in FACTORS},
        "detector": detector,
        "method": method,
        "f1": found.mean if found else None,
        "deviation": found.deviation if found else None,
        "seeds": found.seeds if found else 0,
        "paper_dataset": paper.get("dataset"),
        "paper": paper.get("value"),
    }


def _value(line: dict[str, Any]) -> Value:
    found = None
    if line["f1"] is not None:
        found = Spread(line["f1"], line["deviation"], line["seeds"])
    paper, where = line["paper"], line["paper_dataset"]
    value = value_beside(found, paper)
    if where in (None, line["dataset"]):
        return value
    return replace(value, below=f"paper {paper:g} on {where}")
