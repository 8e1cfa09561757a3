"""F1 of detection in the paper's layout: one factor changes at a time.

The paper has CIFAR-10 and mean outputs, and one figure for lightsplit-f and -l. On
another dataset, its figure still stands below ours, marked as CIFAR-10's: only the
direction can be compared.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lightsplit.reports.detections import detectors, over_seeds
from lightsplit.reports.families import FACTORS, Family
from lightsplit.reports.groups import Group, Spread
from lightsplit.reports.paper import read_figures, value_beside
from lightsplit.reports.tables import Table, Value

NAME = "backdoors"  # its name in data/paper.csv
_NOTE = (
    "F1 of the flags at the last verdict, mean over seeds; one factor differs from "
    "the baseline at a time. The paper's figures are for CIFAR-10 and mean outputs, "
    "one for both LightSplit codecs, its baseline over three seeds and the rest with "
    "one. A malicious client that stands out but stays below the threshold counts as 0."
)
Figure = dict[str, Any]
Figures = dict[tuple[Any, ...], Figure]


def f1_table(families: Sequence[Family]) -> Table:
    """Return one row per detector and changed factor, one column per codec."""
    poisoned = [family for family in families if family.is_poisoned]
    groups = [group for family in poisoned for group in family.groups]
    methods = list(dict.fromkeys(group.method for group in groups))
    published = _published()
    rows: list[tuple[Value, ...]] = []
    lines: list[Figure] = []
    for detector in detectors(groups):
        for family in poisoned:
            below = family.title if len(poisoned) > 1 else ""
            for members in family.rows():
                setting, value = family.heading(members[0])
                found = [_line(members, detector, m, published) for m in methods]
                heading = (Value(detector), Value(setting, below=below), Value(value))
                rows.append((*heading, *map(_value, found)))
                lines += found
    title = "Backdoors: F1 of detection"
    columns = ("detector", "setting", "value", *methods)
    return Table("backdoor-f1", title, _NOTE, columns, rows, lines)


def _published() -> Figures:
    """Return the paper's figures by their settings."""
    return {
        _key(line, line["detector"]): line
        for line in read_figures()
        if line["table"] == NAME
    }


def _key(settings: dict[str, Any], detector: str) -> tuple[Any, ...]:
    return (detector, *(settings[name] for name in ("codec", "ratio", *FACTORS)))


def _line(
    members: Sequence[Group], detector: str, method: str, published: Figures
) -> Figure:
    """Return the figure of one detector and method among groups with equal factors."""
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


def _value(line: Figure) -> Value:
    found = None
    if line["f1"] is not None:
        found = Spread(line["f1"], line["deviation"], line["seeds"])
    paper, where = line["paper"], line["paper_dataset"]
    value = value_beside(found, paper)
    if where in (None, line["dataset"]):
        return value
    return replace(value, below=f"paper {paper:g} on {where}")
