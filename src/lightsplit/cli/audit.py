"""``lightsplit audit``: what a curious server gets out of a run's messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from lightsplit import attacks, audits
from lightsplit.audits import AuditOptions, Watch
from lightsplit.audits.plan import FormChoice, Source
from lightsplit.cli import console
from lightsplit.cli.audit_options import (
    AttackNames,
    AttackSeed,
    Auxiliary,
    AuxiliaryFrom,
    BudgetName,
    Device,
    During,
    EntriesAsJson,
    Form,
    GoOn,
    Images,
    Run,
    SaveEvery,
    ScoreEvery,
    VictimIndex,
)
from lightsplit.cli.options import DataDir
from lightsplit.results import RunFolder

SHOWN = {
    "ssim": "SSIM",
    "lpips": "LPIPS",
    "mse": "MSE",
    "correlation": "corr.",
    "reidentification": "re-id.",
}


def audit_run(  # noqa: PLR0913
    run: Run,
    *,
    attack: AttackNames = None,
    form: Form = "both",
    images: Images = 0,
    budget: BudgetName = "quick",
    auxiliary: Auxiliary = 0,
    auxiliary_from: AuxiliaryFrom = "others",
    client: VictimIndex = 0,
    during: During = False,
    score_every: ScoreEvery = 100,
    save_every: SaveEvery = 200,
    resume: GoOn = False,
    seed: AttackSeed = 0,
    device: Device = "cpu",
    data_dir: DataDir = None,
    json: EntriesAsJson = False,
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
            during=during,
            score_every=score_every,
            save_every=save_every,
            resume=resume,
        )
        folder = RunFolder.open(run)
        entries = audit_in(folder, options, data_dir, is_quiet=json)
    if json:
        console.print_json(entries)
    else:
        _show(entries, folder)


def _show(entries: list[dict[str, Any]], folder: RunFolder) -> None:
    for table in tables(entries):
        console.out.print(table)
    picture = folder.images / "audit.png"
    if picture.is_file():
        console.out.print(f"pictures: {picture}", soft_wrap=True)


def audit_in(
    folder: RunFolder,
    options: AuditOptions,
    data_dir: Path | None = None,
    *,
    is_quiet: bool = False,
) -> list[dict[str, Any]]:
    """Audit behind progress bars."""
    with _bars(is_quiet=is_quiet) as watch:
        return audits.attack(folder, options, watch=watch, data_dir=data_dir)


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
