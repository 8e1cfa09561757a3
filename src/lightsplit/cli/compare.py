"""``lightsplit compare``: finished runs side by side in the terminal."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from lightsplit.cli import console
from lightsplit.reports import Group, find_runs, group_runs, overview
from lightsplit.reports.monitored import common_heading
from lightsplit.reports.tables import figure

Line = dict[str, Any]


def compare(
    folders: Annotated[
        list[Path], typer.Argument(help="run folders, sweep folders, or their parents")
    ],
    *,
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Compare finished runs: test figures, ratios, bytes, and leakage where audited.

    [bold]Example[/]

      lightsplit compare runs/one runs/two
    """
    with console.reported_errors():
        runs, problems = find_runs(folders)
    groups = group_runs(runs)
    if json:
        console.print_json(overview(groups).lines)
        return
    lines = overview(groups).lines
    settings: dict[str, list[tuple[Group, Line]]] = {}
    for group, line in zip(groups, lines, strict=True):
        settings.setdefault(_title(group), []).append((group, line))
    for title, rows in settings.items():
        console.out.print(_table(title, rows))
        console.out.print(_privacy_table(rows))
        console.out.print(_alone(rows), soft_wrap=True, markup=False)
    left = [(problem.path, problem.reason) for problem in problems]
    left += [
        (run.path, "same settings and seed as another run")
        for group in groups
        for run in group.repeats
    ]
    for path, reason in left:
        console.err.print(f"left out: {path}: {reason}", soft_wrap=True, markup=False)


def _title(group: Group) -> str:
    own = group.labels
    return f"{own['task']}: {own['setting']}, {own['schedule']}"


def _table(title: str, rows: list[tuple[Group, Line]]) -> Table:
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True
    )
    table.add_column("method", overflow="fold", min_width=16)
    heading = common_heading([group.monitor for group, _ in rows])
    for column in ("seeds", heading, "of raw", "cut ratio", "step ratio", "total"):
        table.add_column(column, justify="right")
    for column in ("KiB a sample", "MiB in all"):
        table.add_column(column, justify="right")
    for group, line in rows:
        cells = [
            group.method,
            str(line["seeds"]),
            figure(group).text,
            _number(line["of_raw"], ".3f"),
            _number(line["realised_ratio"], ".4g", "x"),
            _number(line["step_ratio"], ".3g", "x"),
            _number(line["total_ratio"], ".3g", "x"),
            f"{line['step_bytes_per_sample'] / 2**10:.2f}",
            f"{(line['total_bytes'] or 0) / 2**20:.1f}",
        ]
        table.add_row(*cells)
    return table


def _privacy_table(rows: list[tuple[Group, Line]]) -> Table:
    """Return what the codes can tell: the certificate, and the worst attack."""
    table = Table(
        title="what the codes can tell the server",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
    )
    table.add_column("method", overflow="fold", min_width=16)
    for column in ("bits a sample", "distinct codes", "beyond label", "worst SSIM"):
        table.add_column(column, justify="right")
    for group, line in rows:
        table.add_row(
            group.method,
            _number(line["bits_per_sample"], ",.0f"),
            _number(line["reidentification_bound"], ".3f"),
            _number(line["conditional_entropy"], ".1f", " bits"),
            _number(line["leakage_ssim"], ".3f"),
        )
    return table


def _alone(rows: list[tuple[Group, Line]]) -> str:
    """Return what the server is worth in these runs."""
    if not any(group.settings["codec"] == "none" for group, _ in rows):
        return "What is the server worth? Train the same with --codec none to see it."
    below = [group.method for group, line in rows if line["beats_alone"] is False]
    if not below:
        return "Every setting does better than the clients without the server (none)."
    return (
        "No better than the clients without the server (none), which send nothing: "
        f"{', '.join(below)}"
    )


def _number(value: float | None, form: str, unit: str = "") -> str:
    return "–" if value is None else f"{value:{form}}{unit}"
