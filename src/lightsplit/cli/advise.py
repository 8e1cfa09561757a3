"""``lightsplit advise``: which cut, codec and objectives keep within limits."""

import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from lightsplit.advice import (
    LADDER,
    Advice,
    Choices,
    Limits,
    Priced,
    affordable,
    find_candidates,
    make_search,
    price_cells,
    summary,
    write_advice,
)
from lightsplit.advice import advise as choose
from lightsplit.audits import AuditOptions
from lightsplit.cli import console
from lightsplit.cli.advise_options import (
    AttackNames,
    Auxiliary,
    BudgetName,
    CodecNames,
    Cuts,
    Grid,
    Images,
    MaxAccuracyLoss,
    MaxClientFlops,
    MaxReidentification,
    MaxSsimGain,
    NumbersOfBits,
    ObjectiveSets,
    Out,
)
from lightsplit.cli.options import (
    Cpus,
    DataDir,
    DryRun,
    FiguresAsJson,
    Gpus,
    Ray,
    ResumeCells,
    WorkerCount,
)
from lightsplit.cli.settings import Settings, codec_options, takes_experiment
from lightsplit.cli.sweeping import (
    check_extras,
    common_order,
    estimates,
    make_workers,
    run_cells,
    show_plan,
)
from lightsplit.errors import ConfigError, RunError
from lightsplit.reports import Problem, Run, read_run
from lightsplit.results.settings import NAMED
from lightsplit.sweeps import (
    Cell,
    Sweep,
    SweepFolder,
    SweepState,
    Workers,
    expand,
    find_sweep,
    make_audit_options,
    read_sweep,
)

IMAGES = 500  # among few images even a guess without any code names some


@partial(takes_experiment, without=(*codec_options(), "wcc"))
def advise(  # noqa: PLR0913
    *,
    settings: Settings,
    max_reidentification: MaxReidentification = 0.05,
    max_ssim_gain: MaxSsimGain = 0.05,
    max_client_flops: MaxClientFlops = None,
    max_accuracy_loss: MaxAccuracyLoss = None,
    cut: Cuts = None,
    codec: CodecNames = None,
    bits: NumbersOfBits = None,
    objective: ObjectiveSets = None,
    grid: Grid = None,
    attack: AttackNames = None,
    budget: BudgetName = None,
    images: Images = None,
    auxiliary: Auxiliary = None,
    out: Out = None,
    resume: ResumeCells = False,
    workers: WorkerCount = None,
    ray: Ray = None,
    cpus: Cpus = 1,
    gpus: Gpus = 0,
    data_dir: DataDir = None,
    dry_run: DryRun = False,
    json: FiguresAsJson = False,
) -> None:
    """Find the cut, codec and objectives that keep within limits of leakage.

    Trains and attacks every setting of a small grid, draws what each reaches against
    what the worst attack gets, and names the best one within the limits. Raw codes and
    training without the server (codec none) are always among them: a setting that does
    no better than the clients alone is pointless, and the advice says so.

    The folder of the search gets report.html, frontier.png, frontier.csv, frontier.json
    and advice.toml, which 'lightsplit train' runs as it is. Exit codes: 0 done, 1
    error, 4 nothing meets the limits, 130 interrupted.

    [bold]Examples[/]

      lightsplit advise                                     the embedded digits, minutes

      lightsplit advise --dataset fashion-mnist --train-limit 10000 --dry-run

      lightsplit advise --task my_task.py --bits 8 --bits 16 --max-reidentification 0.02

      lightsplit advise --cut l2 --objective none --objective
      class-codes+conditional-entropy:budget=3

      lightsplit train runs/advise-digits/advice.toml
    """
    count = workers or os.cpu_count() or 1
    with console.reported_errors():
        limits = Limits(
            max_reidentification, max_ssim_gain, max_client_flops, max_accuracy_loss
        )
        choices = Choices(
            tuple(cut or ()),
            tuple(codec or ()),
            tuple(bits or ()),
            tuple(objective or ()),
        )
        asked = _asked(_common(settings), choices, grid)
        given = {"budget": budget, "images": images, "auxiliary": auxiliary}
        search = make_plan(asked, limits, given | {"attacks": attack}, data_dir)
        costs = estimates(search.cells, count, search.audit, data_dir)
        if dry_run:
            flops = {one.cell.key: one.client_flops for one in search.priced}
            show_plan(search.sweep, search.cells, costs, count, flops)
            return
        check_extras(ray=bool(ray), audit=True, reports=True)
        path = out or Path("runs") / asked.name
        with SweepFolder(path).opened(resume=resume) as folder:
            pool = make_workers(count, ray, cpus=cpus, gpus=gpus)
            state = search.run(folder, pool, costs)
            end_if_unfinished(state)
            advice = search.conclude(folder)
    show_advice(advice, path, as_json=json)
    if state.failed:
        raise SystemExit(console.ERROR_EXIT)
    if advice.chosen is None:
        raise SystemExit(console.NO_SETTING_EXIT)


@dataclass(frozen=True)
class Search:
    """A search that is about to run.

    Attributes:
        sweep: what is written down about it.
        priced: its cells with the FLOPs of their clients.
        limits: what a setting may leak and cost.
        audit: how every cell is attacked.
        data_dir: folder of the datasets.
    """

    sweep: Sweep
    priced: list[Priced]
    limits: Limits
    audit: AuditOptions | None
    data_dir: Path | None = None

    @property
    def cells(self) -> list[Cell]:
        """The cells alone."""
        return [one.cell for one in self.priced]

    def run(
        self, folder: SweepFolder, workers: Workers, costs: dict[str, Any]
    ) -> SweepState:
        """Train and attack every cell that is not finished yet."""
        folder.write(self.sweep)
        order = replace(common_order(folder.path, self.data_dir), audit=self.audit)
        return run_cells(self.cells, folder, workers, order=order, costs=costs)

    def conclude(self, folder: SweepFolder) -> Advice:
        """Choose among the finished cells, and write the files of the advice."""
        runs, problems = self._read(folder)
        flops = {run.path: flops for run, flops in runs}
        found = find_candidates([run for run, _ in runs], flops)
        if not found:
            reason = f": {problems[0].reason}" if problems else ""
            raise RunError(f"no cell in {folder.path} can be judged{reason}")
        advice = choose(found, self.limits)
        title = self.sweep.title
        write_advice(advice, folder.path, title=title, problems=tuple(problems))
        return advice

    def _read(self, folder: SweepFolder) -> tuple[list[tuple[Run, int]], list[Problem]]:
        runs, problems = [], []
        for cell, flops in self.priced:
            place = folder.path / folder.folder_name(cell)
            try:
                runs.append((read_run(place), flops))
            except RunError as error:
                problems.append(Problem(place, str(error)))
        return runs, problems


def make_plan(
    asked: Sweep,
    limits: Limits,
    audit: dict[str, Any],
    data_dir: Path | None = None,
) -> Search:
    """Return the search of a sweep; refuse what cannot be built or attacked."""
    given = {name: value for name, value in audit.items() if value}
    usual = {"attacks": list(LADDER), "images": IMAGES}
    table = {**(asked.audit or usual), **given}
    cells = expand(asked)
    for cell in cells:
        _ = cell.experiment.make_task().image_shape  # refuses what no attack can read
    priced = affordable(price_cells(cells), limits.client_flops)
    sweep = replace(asked, audit=table)
    return Search(sweep, priced, limits, make_audit_options(table), data_dir)


def end_if_unfinished(state: SweepState) -> None:
    """Print what failed; if cells are left, say how to resume and exit."""
    for key, reason in state.failed.items():
        console.warn(f"failed: {state.cells[key].label}: {reason}")
    if state.left:
        console.warn(
            f"interrupted: {len(state.left)} of {len(state.cells)} cells are left; "
            "give the same command with --resume"
        )
        raise SystemExit(console.INTERRUPTED_EXIT)


def show_advice(advice: Advice, path: Path, *, as_json: bool = False) -> None:
    """Print the advice and where its files are."""
    if as_json:
        console.print_json(summary(advice))
        return
    for sentence in advice.sentences:
        console.out.print(sentence, soft_wrap=True, markup=False, highlight=False)
    console.out.print(f"page: {path / 'report.html'}", soft_wrap=True)
    if advice.chosen is not None:
        file = path / "advice.toml"
        console.out.print(f"train it: lightsplit train {file}", soft_wrap=True)


def _common(settings: Settings) -> Settings:
    """Return the settings of every cell; a list of parts is one value, not several."""
    return {
        name: [value] if name in NAMED and isinstance(value, list) else value
        for name, value in settings.items()
    }


def _asked(settings: Settings, choices: Choices, grid: str | None) -> Sweep:
    if grid is None:
        task = str(settings.get("task", settings.get("dataset", "digits")))
        return make_search(f"advise-{Path(task).stem}", settings, choices)
    if not choices.are_usual:
        raise ConfigError(
            "--grid names the settings to try: write --cut, --codec, --bits and "
            "--objective into the file instead"
        )
    asked = read_sweep(find_sweep(grid), changes=settings)
    return replace(asked, name=f"advise-{asked.name}")
