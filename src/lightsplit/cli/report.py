"""``lightsplit report``: the figures of several runs on one page."""

from pathlib import Path
from typing import Annotated

import typer

from lightsplit import extras
from lightsplit.cli import console
from lightsplit.errors import ConfigError
from lightsplit.reports import find_runs, make_report, write_files, write_page
from lightsplit.reports.cards import make_card, write_card_page, write_card_pdf
from lightsplit.reports.runs import Problem, Run


def report(
    folders: Annotated[
        list[Path], typer.Argument(help="run folders, sweep folders, or their parents")
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="the page to write")] = Path(
        "report.html"
    ),
    figures: Annotated[
        Path | None,
        typer.Option(help="also write the figures (SVG, PNG) and tables (CSV) here"),
    ] = None,
    title: Annotated[str | None, typer.Option(help="heading of the page")] = None,
    card: Annotated[
        bool,
        typer.Option(
            "--card", help="a privacy card of one run, as a page and as PDF, instead"
        ),
    ] = False,
) -> None:
    """Put the figures of runs on one page that works offline.

    Tables have the paper's layout, with its values beside ours. Warnings come first.
    With --card, one run is described for readers who do not read code: what was trained
    and where it was cut, what crossed, what the strongest attacker got, what is not
    protected. The card is written as card.html and card.pdf into the run's folder.

    [bold]Examples[/]

      lightsplit report runs/NAME --card

      lightsplit report runs/utility-small -o utility.html

      lightsplit report runs -o all.html --figures figures
    """
    with console.reported_errors():
        extras.check("reports", purpose="a report")
        runs, problems = find_runs(folders)
        if card:
            _write_card(runs, problems, title or "")
            return
        made = make_report(runs, problems, title=title or "")
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


def _write_card(runs: list[Run], problems: list[Problem], title: str) -> None:
    if len(runs) != 1:
        reason = f"; {problems[0].path}: {problems[0].reason}" if problems else ""
        raise ConfigError(f"a card describes one run, got {len(runs)}{reason}")
    made = make_card(runs[0], title)
    files = [runs[0].path / "card.html", runs[0].path / "card.pdf"]
    write_card_page(made, files[0])
    write_card_pdf(made, files[1])
    for file in files:
        console.out.print(str(file), soft_wrap=True, highlight=False)
