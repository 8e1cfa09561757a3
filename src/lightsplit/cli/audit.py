"""``lightsplit audit``: measure how much a curious server learns from a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from lightsplit import attacks, audits, extras
from lightsplit.audits import AuditOptions, Watch
from lightsplit.audits.options import FormChoice, Source
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
    MovedData,
    MovedTask,
    Run,
    SaveEvery,
    ScoreEvery,
    VictimIndex,
)
from lightsplit.cli.link import SecretFile
from lightsplit.cli.options import DataDir
from lightsplit.experiments import read_experiment
from lightsplit.part_options import write_part
from lightsplit.results import (
    FACTS,
    NO_IMAGES,
    RunFolder,
    attack_label,
    columns_text,
    shown_metrics,
)

LEFT_OUT = ("psnr",)  # says the same as the MSE beside it
_FIGURE_WIDTH = 6  # of 0.123 above ±0.012: a figure is never cut short
HEADINGS = {
    "ssim": "SSIM",
    "lpips": "LPIPS",
    "mse": "MSE",
    "correlation": "corr.",
    "reidentification": "re-id.",
    "r2": "R²",
    "row_mse": "MSE",
    "token_accuracy": "tokens in place",
    "token_f1": "tokens (F1)",
    "text_reidentification": "re-id.",
}
THINGS = {"image": "images", "table": "rows", "text": "texts"}


def audit_run(  # noqa: PLR0913
    run: Run,
    *,
    attack: AttackNames = None,
    task: MovedTask = None,
    form: Form = "both",
    images: Images = None,
    budget: BudgetName = "quick",
    auxiliary: Auxiliary = None,
    auxiliary_from: AuxiliaryFrom = "others",
    client: VictimIndex = 0,
    during: During = False,
    score_every: ScoreEvery = 100,
    save_every: SaveEvery = 200,
    resume: GoOn = False,
    seed: AttackSeed = 0,
    device: Device = "cpu",
    data: MovedData = None,
    secret: SecretFile = None,
    data_dir: DataDir = None,
    json: EntriesAsJson = False,
) -> None:
    """Attack a finished run with its server's view, and score the reconstructions.

    Images, rows of tables and texts are attacked, of built-in tasks and your own, in
    one process or as an owner recorded them. The trivial attackers (means, black,
    frequent tokens, nearest known sample) always run too: an attack that does not beat
    them shows nothing. The worst figure of all attacks on the same samples is the claim
    about a codec.

    [bold]Examples[/]

      lightsplit audit runs/digits-…                           trivial, ladder, labels

      lightsplit audit RUN --attack decoder --budget full --images 1000

      lightsplit audit RUN --attack decoder:blocks=4,steps=500 --attack decoder

      lightsplit audit RUN --attack unsplit --form both

      lightsplit audit RUN --attack label-hint --during

      lightsplit audit RUN --attack sdar --during --budget full

      lightsplit audit runs/client-alice --data ./mine         after `join --record`

    `lightsplit list attacks` shows the options of each attack. Figures are added to the
    run's record.json, pictures to its images/audit.png.
    """
    with console.reported_errors():
        extras.check("audit", purpose="an audit")
        folder = RunFolder.open(run)
        options = AuditOptions(
            attacks=tuple(attack or planned_attacks(folder)),
            form=cast(FormChoice, form),
            images=images,
            budget=cast(attacks.Budget, budget),
            auxiliary=auxiliary,
            auxiliary_from=cast(Source, auxiliary_from),
            client=client,
            seed=seed,
            device=device,
            task=task,
            data=None if data is None else str(data),
            secret=None if secret is None else str(secret),
            during=during,
            score_every=score_every,
            save_every=save_every,
            resume=resume,
        )
        entries = audit_in(folder, options, data_dir, is_quiet=json)
    if json:
        console.print_json(entries)
    else:
        _show(entries, folder)


def planned_attacks(folder: RunFolder) -> list[str]:
    """Return the attacks that the run's experiment file names, with their options."""
    planned = read_experiment(folder.experiment_file).get("attack", {})
    return [write_part(name, options) for name, options in planned.items()]


def _show(entries: list[dict[str, Any]], folder: RunFolder) -> None:
    for table in tables(entries):
        console.out.print(table)
    short = [
        attack_label(entry) for entry in entries if entry.get("converged") is False
    ]
    if short:
        console.out.print(
            f"not converged: {', '.join(short)}. More effort may get more: try a "
            "larger --budget, or read the notes in record.json."
        )
    picture = folder.images / "audit.png"
    if picture.is_file():
        console.out.print(f"pictures: {picture}", soft_wrap=True)
    sheets = [entry["sheet"]["file"] for entry in entries if "sheet" in entry]
    if sheets:
        where = folder.images / "sheet-*.csv"
        console.out.print(f"originals beside guesses: {where}", soft_wrap=True)


def audit_in(
    folder: RunFolder,
    options: AuditOptions,
    data_dir: Path | None = None,
    *,
    is_quiet: bool = False,
) -> list[dict[str, Any]]:
    """Run an audit and show progress bars."""
    with _bars(is_quiet=is_quiet) as watch:
        return audits.attack(folder, options, watch=watch, data_dir=data_dir)


def tables(entries: list[dict[str, Any]]) -> list[Table]:
    """Return the figures as tables: reconstructions first, then labels."""
    images = [entry for entry in entries if entry["kind"] not in NO_IMAGES]
    labels = [entry for entry in entries if entry["kind"] == "labels"]
    facts = [entry for entry in entries if entry["kind"] in FACTS]
    made = []
    if images:
        made.append(_sample_table(images))
    columns = _column_table(images)
    if columns is not None:
        made.append(columns)
    if labels:
        made.append(_label_table(labels))
    if facts:
        made.append(_fact_table(facts))
    return made


def _sample_table(entries: list[dict[str, Any]]) -> Table:
    known = shown_metrics(entries[0]["metrics"])
    shown = [name for name in known if name not in LEFT_OUT]
    count, things = entries[0]["images"], THINGS[entries[0].get("truth", "image")]
    table = Table(title=f"reconstruction of {count} {things}", title_justify="left")
    table.add_column("attack", overflow="fold", min_width=13)
    has_forms = any(entry["form"] for entry in entries)
    if has_forms:
        table.add_column("form", no_wrap=True)
    headings = [HEADINGS.get(name, name) for name in shown]
    for column in headings:
        table.add_column(column, justify="right", min_width=_FIGURE_WIDTH)
    for column in ("beats trivial", "time"):
        table.add_column(column, justify="right", min_width=4)
    for entry in entries:
        table.add_row(
            attack_label(entry),
            *([entry["form"] or "–"] if has_forms else []),
            *(_with_interval(entry["metrics"][name]) for name in shown),
            {None: "–", True: "yes", False: "no"}[entry["beats_trivial"]],
            f"{entry['seconds']:.0f} s",
            style="dim" if entry["kind"] == "trivial" else "",
        )
    return table


def _column_table(entries: list[dict[str, Any]]) -> Table | None:
    """Return the columns of the attack that explains most of a table."""
    having = [one for one in entries if "columns" in one and one["kind"] != "trivial"]
    if not having:
        return None
    best = max(having, key=lambda one: one["metrics"]["r2"]["mean"])
    table = Table(title=f"columns, by {attack_label(best)}", title_justify="left")
    for column in ("column", "R²", "guessed", "blind guess"):
        table.add_column(column, justify="left" if column == "column" else "right")
    for line in columns_text(best["columns"]):
        table.add_row(*line)
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
            attack_label(entry),
            entry["message"] + at,
            score,
            _with_interval(figures),
            f"{entry['chance']:.3f}",
        )
    return table


def _fact_table(entries: list[dict[str, Any]]) -> Table:
    blind = {f"{one['metrics']['tpr_at_1_fpr']['chance']:.3f}" for one in entries}
    title = f"facts about samples (blind guessing: 0.5, 0.5 and {_range(blind)})"
    table = Table(title=title, title_justify="left")
    for column in ("attack", "about", "message"):
        table.add_column(column, no_wrap=column != "attack", overflow="fold")
    for column in ("AUC", "balanced accuracy", "found at 1 % false"):
        table.add_column(column, justify="right")
    for entry in entries:
        figures = (_with_interval(each) for each in entry["metrics"].values())
        table.add_row(attack_label(entry), entry["kind"], entry["message"], *figures)
    return table


def _range(figures: set[str]) -> str:
    """Return one figure, or the lowest and the highest of several."""
    ordered = sorted(figures)
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def _with_interval(figures: dict[str, float]) -> str:
    """Return a mean and the larger half of its 95 % interval."""
    mean = figures["mean"]
    if "low" not in figures:
        return f"{mean:.3f}"
    reach = max(mean - figures["low"], figures["high"] - mean)
    return f"{mean:.3f} ±{reach:.3f}"


@contextmanager
def _bars(*, is_quiet: bool) -> Iterator[Watch]:
    """Yield a function that opens a progress bar on standard error for each title."""
    progress = Progress(
        TextColumn("{task.description:24}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        console=console.err,
        disable=is_quiet,
    )

    def watch(title: str) -> attacks.Progress:
        progress.start()  # only once there is something to show
        task = progress.add_task(title, total=None)

        def show(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        return show

    try:
        yield watch
    finally:
        if progress.tasks:
            progress.stop()
