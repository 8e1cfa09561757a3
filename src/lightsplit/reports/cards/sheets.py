"""Tables in place of pictures: columns of a table, and samples beside guesses."""

import csv
from pathlib import Path
from typing import Any

from lightsplit.reports.cards.sections import Section
from lightsplit.reports.runs import Run
from lightsplit.results import attack_label, columns_text, main_ladder

COLUMNS = 5  # of a table that a page has room for
LINES = 6
LONGEST = 160  # letters of a text
STRENGTH = {"table": "r2", "text": "token_f1"}  # the metric that ranks attacks


def sheet_sections(run: Run) -> list[Section]:
    """Return what the strongest attack made of rows or texts; nothing for images."""
    best = _strongest(run)
    if best is None:
        return []
    sections = [_columns(best)] if "columns" in best else []
    samples = _samples(run, best)
    return [*sections, samples] if samples is not None else sections


def _strongest(run: Run) -> dict[str, Any] | None:
    ladder = [one for one in main_ladder(run.audit) if one.get("truth") in STRENGTH]
    if not ladder:
        return None
    return max(ladder, key=lambda one: one["metrics"][STRENGTH[one["truth"]]]["mean"])


def _columns(entry: dict[str, Any]) -> Section:
    return Section(
        "What was guessed of each column",
        [
            f"The guesses are those of {attack_label(entry)}. A blind guess is the "
            "column's mean, or its most frequent category."
        ],
        head=("column", "explained (R\u00b2)", "guessed", "blind guess"),
        rows=[tuple(line) for line in columns_text(entry["columns"])],
    )


def _samples(run: Run, entry: dict[str, Any]) -> Section | None:
    """Return the first samples beside the guesses, as far as a page has room."""
    name = Path(entry["sheet"]["file"]).name  # never outside the run's folder
    file = run.path / "images" / name
    if not file.is_file():
        return None
    with file.open(newline="", encoding="utf-8") as text:
        head, *lines = csv.reader(text)
    width = COLUMNS + 2
    return Section(
        "Samples beside guesses",
        [
            f"The first samples that were attacked, as {attack_label(entry)} guessed "
            f"them. {name} has more of them."
        ],
        head=tuple(head[:width]),
        rows=[tuple(one[:LONGEST] for one in line[:width]) for line in lines[:LINES]],
    )
