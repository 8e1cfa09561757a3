"""``lightsplit report``: what runs came to, as one page."""

from pathlib import Path
from typing import Annotated

import typer

from lightsplit.cli import console
from lightsplit.reports import find_runs, make_report, write_files, write_page


def report(
    folders: Annotated[
        list[Path], typer.Argument(help="runs, sweeps, or folders that hold some")
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="the page to write")] = Path(
        "report.html"
    ),
    figures: Annotated[
        Path | None,
        typer.Option(help="write figures (SVG, PNG) and tables (CSV) here too"),
    ] = None,
    title: Annotated[str, typer.Option(help="heading of the page")] = "",
) -> None:
    """Put the figures of runs on one page that needs no network.

    Tables stand in the paper's shape with its values beside ours; warnings come first.

    [bold]Examples[/]

      lightsplit report runs/utility-small -o utility.html

      lightsplit report runs -o all.html --figures figures
    """
    with console.reported_errors():
        runs, problems = find_runs(folders)
        made = make_report(runs, problems, title=title)
        write_page(made, out)
        if figures is not None:
            write_files(made, figures)
    for problem in problems:
        console.err.print(
            f"left out: {problem.path}: {problem.reason}", soft_wrap=True, markup=False
        )
    console.out.print(
        f"{len(runs)} runs, {len(made.groups)} experiments: {out}", soft_wrap=True
    )
