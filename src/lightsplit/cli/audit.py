"""``lightsplit audit``: what a curious server gets out of a run's messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from lightsplit import attacks
from lightsplit.audits import AuditOptions, Watch, audit, audit_during
from lightsplit.audits.plan import FormChoice, Source
from lightsplit.cli import console
from lightsplit.results import RunFolder

SHOWN = {
    "ssim": "SSIM",
    "lpips": "LPIPS",
    "mse": "MSE",
    "correlation": "corr.",
    "reidentification": "re-id.",
}


def audit_run(  # noqa: PLR0913
    run: Annotated[Path, typer.Argument(help="folder of a finished `train` run")],
    *,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            help="name of an attack, may be repeated; `all` is all; default: the "
            "oracle ladder and label inference (see `lightsplit list attacks`)"
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            help="published: the released pipeline on the lifted code; adaptive: the "
            "codec inside the attacker's own model; or both"
        ),
    ] = "both",
    images: Annotated[
        int,
        typer.Option(
            min=0, help="images to reconstruct; 0: 64, 256 if short, 1000 if full"
        ),
    ] = 0,
    budget: Annotated[
        str,
        typer.Option(
            help="quick: minutes, cannot rank codecs; short: an hour or two; full: as "
            "long as it takes"
        ),
    ] = "quick",
    auxiliary: Annotated[
        int,
        typer.Option(
            min=0,
            help="images the attacker has; 0: 2000, 10000 if short, 30000 if full",
        ),
    ] = 0,
    auxiliary_from: Annotated[
        str,
        typer.Option(
            help="others: the other clients' images, or with one client test images in "
            "random order; test: the first test images"
        ),
    ] = "others",
    client: Annotated[int, typer.Option(min=0, help="whose images are attacked")] = 0,
    during: Annotated[
        bool,
        typer.Option(
            "--during",
            help="train the run once more, with attacks that learn at its server; "
            "label inference at each evaluation",
        ),
    ] = False,
    score_every: Annotated[
        int,
        typer.Option(
            min=0,
            help="--during: steps between lines of audit-NAME.jsonl; 0: none",
        ),
    ] = 100,
    save_every: Annotated[
        int, typer.Option(min=0, help="--during: steps between saves; 0: never")
    ] = 200,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="--during: go on where it was interrupted"),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="of the attacks")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 …")] = "cpu",
    data_dir: Annotated[
        Path | None,
        typer.Option(help="where the datasets lie; default: LIGHTSPLIT_DATA or cache"),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="print the entries and nothing else")
    ] = False,
) -> None:
    """Attack a finished run with what its server saw, and score what comes back.

    The trivial attackers (mean image, class mean, black, nearest known image) are
    always beside the others: an attack that does not beat them shows nothing. The claim
    about a codec is the worst figure of the oracle ladder.

    [bold]Examples[/]

      lightsplit audit runs/digits-…                           trivial, ladder, labels

      lightsplit audit RUN --attack decoder --budget full --images 1000

      lightsplit audit RUN --attack unsplit --form both

      lightsplit audit RUN --attack label-hint --during

      lightsplit audit RUN --attack sdar --during --budget full

    Figures are added to the run's record.json, pictures to its images/audit.png.
    """
    with console.reported_errors():
        options = AuditOptions(
            attacks=tuple(attack or ()),
            form=cast(FormChoice, form),
            images=images,
            budget=cast(attacks.Budget, budget),
            auxiliary=auxiliary,
            auxiliary_from=cast(Source, auxiliary_from),
            client=client,
            seed=seed,
            device=device,
            score_every=score_every,
            save_every=save_every,
            resume=resume,
        )
        folder = RunFolder.open(run)
        entries = audit_in(folder, options, data_dir, is_during=during, is_quiet=json)
    if json:
        console.print_json(entries)
        return
    for table in tables(entries):
        console.out.print(table)
    console.out.print(f"pictures: {run / 'images' / 'audit.png'}", soft_wrap=True)


def audit_in(
    folder: RunFolder,
    options: AuditOptions,
    data_dir: Path | None = None,
    *,
    is_during: bool = False,
    is_quiet: bool = False,
) -> list[dict[str, Any]]:
    """Audit behind progress bars."""
    attack = audit_during if is_during else audit
    with _bars(is_quiet=is_quiet) as watch:
        return attack(folder, options, watch=watch, data_dir=data_dir)


def tables(entries: list[dict[str, Any]]) -> list[Table]:
    """Return the figures as tables: reconstructions, then labels."""
    images = [entry for entry in entries if entry["kind"] != "labels"]
    labels = [entry for entry in entries if entry["kind"] == "labels"]
    made = []
    if images:
        made.append(_image_table(images))
    if labels:
        made.append(_label_table(labels))
    return made


def _image_table(entries: list[dict[str, Any]]) -> Table:
    shown = [name for name in SHOWN if name in entries[0]["metrics"]]
    count = entries[0]["images"]
    table = Table(title=f"reconstruction of {count} images", title_justify="left")
    for column in ("attack", "form"):
        table.add_column(column, no_wrap=True)
    for column in (*(SHOWN[name] for name in shown), "beats trivial", "time"):
        table.add_column(column, justify="right")
    for entry in entries:
        table.add_row(
            entry["attack"],
            entry["form"] or "–",
            *(_with_interval(entry["metrics"][name]) for name in shown),
            {None: "–", True: "yes", False: "no"}[entry["beats_trivial"]],
            f"{entry['seconds']:.0f} s",
            style="dim" if entry["kind"] == "trivial" else "",
        )
    return table


def _label_table(entries: list[dict[str, Any]]) -> Table:
    title = "label inference (the labels never left the client)"
    table = Table(title=title, title_justify="left")
    for column in ("attack", "message", "score"):
        table.add_column(column, no_wrap=True)
    for column in ("reached", "chance"):
        table.add_column(column, justify="right")
    for entry in entries:
        score, figures = next(iter(entry["metrics"].items()))
        at = f" at {entry['step']}" if "step" in entry else ""
        table.add_row(
            entry["attack"],
            entry["message"] + at,
            score,
            _with_interval(figures),
            f"{entry['chance']:.3f}",
        )
    return table


def _with_interval(figures: dict[str, float]) -> str:
    """Return a mean and how far its 95 % interval reaches at most."""
    mean = figures["mean"]
    if "low" not in figures:
        return f"{mean:.3f}"
    reach = max(mean - figures["low"], figures["high"] - mean)
    return f"{mean:.3f} ±{reach:.3f}"


@contextmanager
def _bars(*, is_quiet: bool) -> Iterator[Watch]:
    """Give every title a progress bar of its own on standard error."""
    progress = Progress(
        TextColumn("{task.description:24}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        console=console.err,
        disable=is_quiet,
    )

    def watch(title: str) -> attacks.Progress:
        progress.start()  # not before there is something to show
        task = progress.add_task(title, total=None)

        def show(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        return show

    try:
        yield watch
    finally:
        if progress.tasks:
            progress.stop()
