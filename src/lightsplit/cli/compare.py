"""``lightsplit compare``: finished runs side by side in the terminal."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from lightsplit.cli import console
from lightsplit.reports import Group, find_runs, group_runs, overview
from lightsplit.reports.tables import percent, schedule_text, setting_text

Line = dict[str, Any]


def compare(
    folders: Annotated[
        list[Path], typer.Argument(help="runs, sweeps, or folders that hold some")
    ],
    *,
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Compare finished runs: accuracy, ratios, bytes, and leakage where audited.

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
    left = [(problem.path, problem.reason) for problem in problems]
    left += [
        (run.path, "same settings and seed as another run")
        for group in groups
        for run in group.repeats
    ]
    for path, reason in left:
        console.err.print(f"left out: {path}: {reason}", soft_wrap=True, markup=False)


def _title(group: Group) -> str:
    own = group.settings
    return f"{own['dataset']}: {setting_text(own)}, {schedule_text(own)}"


def _table(title: str, rows: list[tuple[Group, Line]]) -> Table:
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True
    )
    is_audited = any(line["leakage_ssim"] is not None for _, line in rows)
    table.add_column("method", no_wrap=True)
    for column in ("seeds", "accuracy", "of raw", "cut ratio", "step ratio"):
        table.add_column(column, justify="right")
    for column in (
        "KiB a sample",
        "MiB in all",
        *(["worst SSIM"] if is_audited else []),
    ):
        table.add_column(column, justify="right")
    for group, line in rows:
        cells = [
            group.method,
            str(line["seeds"]),
            percent(group.spread("test_accuracy")).text,
            _number(line["of_raw"], ".3f"),
            _number(line["realised_ratio"], ".4g") + "x",
            _number(line["step_ratio"], ".3g") + "x",
            f"{line['step_bytes_per_sample'] / 2**10:.2f}",
            f"{(line['total_bytes'] or 0) / 2**20:.1f}",
        ]
        table.add_row(*cells, *([_number(line["leakage_ssim"], ".3f")] * is_audited))
    return table


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}"
