"""The paper's tables in their own layout, with its values beside ours.

data/paper.csv has one line per figure of the paper, with its settings. A table is a
pivot over those settings: a cell shows the matching runs, the paper's value, and the
difference. Runs that the paper does not have (on another dataset, for example) stand in
the same table without one. Rows and columns without any run of ours are left out.
"""

import csv
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from lightsplit.reports.groups import Group, Spread
from lightsplit.reports.paper_cells import cell_figure
from lightsplit.reports.paper_derived import derived_figures
from lightsplit.reports.paper_shapes import SHAPES, Shape
from lightsplit.reports.tables import Table, Value

LIFTED_WIDTHS = {"cifar10": 512, "cifar100": 2048}  # lightsplit-l's; 128 elsewhere
Place = tuple[tuple[Any, ...], tuple[Any, ...]]
Figure = dict[str, Any]


def paper_tables(groups: Sequence[Group]) -> list[Table]:
    """Return every table of the paper for which there are runs."""
    printed = read_figures()
    published = [*printed, *derived_figures(printed)]
    tables = [_table(shape, groups, published) for shape in SHAPES]
    return [table for table in tables if table is not None]


def read_figures() -> list[Figure]:
    """Return the paper's figures, each with its settings."""
    text = (files("lightsplit.reports") / "data" / "paper.csv").read_text()
    return [
        {name: _parse(name, value) for name, value in line.items() if value != ""}
        for line in csv.DictReader(text.splitlines())
    ]


def value_beside(spread: Spread | None, paper: float | None) -> Value:
    """Return our figure with the paper's and the difference below it."""
    if spread is None:
        return Value("–", -1e9, below="" if paper is None else f"paper {paper:g}")
    deviation = f" ± {spread.deviation:.2f}" if spread.seeds > 1 else ""
    text = f"{spread.mean:.2f}{deviation}"
    if paper is None:
        return Value(text, spread.mean)
    difference = spread.mean - paper
    return Value(text, spread.mean, below=f"paper {paper:g} ({difference:+.2f})")


def _parse(name: str, value: str) -> float | str:
    """Return a number as a number, except for a cut: ``2`` may be its name."""
    if name == "cut":
        return value
    try:
        return float(value)
    except ValueError:
        return value


def _table(
    shape: Shape, groups: Sequence[Group], published: Sequence[Figure]
) -> Table | None:
    ours = _ours(shape, groups)
    columns = sorted({column for _, column in ours})
    if len(columns) < shape.least_columns:
        return None
    theirs = {
        _place(shape, line): line
        for line in published
        if _is_of(shape, line) and line["metric"] == _metric_of(shape, line)
    }
    rows = sorted({row for row, _ in ours}, key=_row_order)
    shown, lines = [], []
    for row in rows:
        values = []
        for column in columns:
            place = (row, column)
            group = ours.get(place)
            figure = None if group is None else cell_figure(shape, group, groups)
            paper = theirs.get(place, {}).get("value")
            values.append(value_beside(figure, paper))
            lines.append(_csv_line(shape, place, figure, paper))
        first = (Value(_text(n, v), v) for n, v in zip(shape.rows, row, strict=True))
        shown.append((*first, *values))
    run = sum(place in theirs for place in ours)
    note = f"{shape.note} {run} of the paper's {len(theirs)} cells were run here."
    headings = [_heading(shape.columns, column) for column in columns]
    names = (*shape.rows, *headings)
    return Table(shape.name, shape.title, note, names, shown, lines)


def _is_of(shape: Shape, line: Figure) -> bool:
    """Return whether a line of the paper belongs to a table.

    Tables with several figures in a cell have one shape per figure, and |φ| stands
    among the model partitions.
    """
    name, metric = line["table"], line["metric"]
    if shape.metric == "lift_parameters":
        return bool(name == "partitions" and metric == "lift_parameters")
    return shape.name in (name, f"{name}-{metric}")


def _ours(shape: Shape, groups: Sequence[Group]) -> dict[Place, Group]:
    """Return the group of each cell; if several match, the longest run."""
    found: dict[Place, Group] = {}
    for group in groups:
        if not _belongs(shape, group.settings):
            continue
        place = _place(shape, group.settings)
        if place not in found or _samples(found[place]) < _samples(group):
            found[place] = group
    return found


def _belongs(shape: Shape, settings: Figure) -> bool:
    if settings.get("trigger") or settings.get("hijack"):
        return False
    if any(settings.get(name) not in allowed for name, allowed in shape.where):
        return False
    if settings["codec"] != "lightsplit-l" or "hidden" in shape.columns:
        return True
    return bool(settings["hidden"] == LIFTED_WIDTHS.get(settings["dataset"], 128))


def _place(shape: Shape, settings: Figure) -> Place:
    return (
        tuple(settings[name] for name in shape.rows),
        tuple(settings[name] for name in shape.columns),
    )


def _samples(group: Group) -> int:
    return max(int(run.record.get("samples", 0)) for run in group.runs)


def _metric_of(shape: Shape, line: Figure) -> str:
    """Return the metric of the paper's cell: the accuracy in a raw row of losses."""
    is_base = shape.metric == "relative_to_raw" and line["codec"] == "raw"
    return "best_test_accuracy" if is_base else shape.metric


def _csv_line(
    shape: Shape, place: Place, spread: Spread | None, paper: float | None
) -> Figure:
    names = (*shape.rows, *shape.columns)
    return {
        **dict(zip(names, (*place[0], *place[1]), strict=True)),
        "metric": shape.metric,
        "ours": None if spread is None else round(spread.mean, 4),
        "deviation": None if spread is None else round(spread.deviation, 4),
        "seeds": 0 if spread is None else spread.seeds,
        "paper": paper,
    }


def _row_order(row: tuple[Any, ...]) -> tuple[Any, ...]:
    ranks = {"raw": "0", "lightsplit-f": "1", "lightsplit-l": "2", "learned-1x1": "3"}
    return tuple(ranks.get(value, value) for value in row)


def _heading(names: tuple[str, ...], values: tuple[Any, ...]) -> str:
    return " ".join(_text(n, v) for n, v in zip(names, values, strict=True))


def _text(name: str, value: Any) -> str:
    match name:
        case "alpha":
            return f"α={value:g}" if value else "IID"
        case "wcc":
            return f"λ={value:g}"
        case "clients":
            return f"n={value:g}"
        case "hidden":
            return f"m={value:g}" if value else "raw"
        case "ratio":
            return f"{value:g}x"
    return str(value)
