"""``lightsplit sweep``: every cell of a grid, in parallel, each one once."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from lightsplit import extras
from lightsplit.audits import AuditOptions
from lightsplit.cli import console
from lightsplit.cli.options import CheckpointEvery, DataDir, TensorBoard
from lightsplit.cli.sweep_progress import SweepBars
from lightsplit.errors import ConfigError
from lightsplit.experiments.settings import parse_change
from lightsplit.sweeps import (
    Cell,
    Estimate,
    LocalWorkers,
    Order,
    RayWorkers,
    Sweep,
    SweepFolder,
    SweepRun,
    SweepState,
    Workers,
    estimate,
    expand,
    find_sweep,
    make_audit_options,
    read_sweep,
    threads_each,
)


def sweep(  # noqa: PLR0913
    file: Annotated[
        str,
        typer.Argument(help="sweep file, or a name from `lightsplit list experiments`"),
    ],
    *,
    scale: Annotated[
        str | None,
        typer.Option(help="small or paper, if the file offers it; default: small"),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="task of every cell: the same as --set task=…")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE that overrides the file; repeatable"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="folder of the sweep; default: runs/FILE-SCALE"),
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="continue in a folder that already has cells")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="number of processes; default: one per core"),
    ] = None,
    ray: Annotated[
        str | None, typer.Option(help="run on Ray: local, or the address of a cluster")
    ] = None,
    cpus: Annotated[float, typer.Option(min=0, help="CPUs per cell on Ray")] = 1,
    gpus: Annotated[float, typer.Option(min=0, help="GPUs per cell on Ray")] = 0,
    data_dir: DataDir = None,
    checkpoint_every: CheckpointEvery = None,
    tensorboard: TensorBoard = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="show the cells and their estimated cost")
    ] = False,
) -> None:
    """Run every cell of a grid of experiments.

    Finished cells are kept, interrupted cells resume from their checkpoint, and a
    failing cell does not stop the others.

    [bold]Examples[/]

      lightsplit list experiments

      lightsplit sweep utility --dry-run

      lightsplit sweep utility --workers 2 --set seed=[0,1,2]

      lightsplit sweep my-grid.toml --resume --ray local
    """
    count = workers or os.cpu_count() or 1
    with console.reported_errors():
        changed = dict(map(parse_change, changes or []))
        if task is not None:
            changed["task"] = task
        asked = read_sweep(find_sweep(file), scale=scale or "", changes=changed)
        cells = expand(asked)
        audit = make_audit_options(asked.audit)
        costs = _estimates(cells, count, audit, data_dir)
        if dry_run:
            _show_plan(asked, cells, costs, count)
            return
        _check_extras(ray=bool(ray), tensorboard=tensorboard, audit=audit is not None)
        path = out or Path("runs") / "-".join(filter(None, (asked.name, asked.scale)))
        with SweepFolder(path).opened(resume=resume) as folder:
            folder.write(asked)
            order = replace(
                _common_order(path, data_dir),
                audit=audit,
                checkpoint_every=checkpoint_every or 0,
                has_tensorboard=tensorboard,
            )
            pool = (
                RayWorkers(ray, cpus=cpus, gpus=gpus, say=console.warn)
                if ray
                else LocalWorkers(count)
            )
            state = _run(cells, folder, pool, order=order, costs=costs)
    _conclude(state, path, file)


def _check_extras(**is_needed: bool) -> None:
    """Raise an error about a missing extra before the sweep writes anything."""
    for extra, needed in is_needed.items():
        if needed:
            extras.check(extra, purpose="this sweep")


def _common_order(path: Path, data_dir: Path | None) -> Order:
    """Return the fields that the orders of all cells share."""
    return Order(
        key="",
        settings={},
        sweep_folder=str(path.resolve()),
        folder_name="",
        data_dir=str(data_dir.resolve()) if data_dir else "",
    )


def _estimates(
    cells: list[Cell],
    workers: int,
    audit: AuditOptions | None,
    data_dir: Path | None,
) -> dict[str, Estimate]:
    """Return the cost of every cell; an invalid cell is refused here."""
    threads = threads_each(workers)
    costs = {}
    for cell in cells:
        try:
            costs[cell.key] = estimate(
                cell.experiment, threads=threads, audit=audit, data_dir=data_dir
            )
        except ConfigError as error:
            raise ConfigError(f"the cell {cell.label}: {error}") from error
    return costs


def _show_plan(
    asked: Sweep, cells: list[Cell], costs: dict[str, Estimate], workers: int
) -> None:
    table = Table(title=asked.title or asked.name, title_justify="left")
    table.add_column("cell")
    for column in ("steps", "bytes", "minutes"):
        table.add_column(column, justify="right")
    for cell in cells:
        cost = costs[cell.key]
        table.add_row(
            cell.label,
            f"{cost.steps:,}",
            console.bytes_text(cost.bytes),
            f"{cost.seconds / 60:.1f}",
        )
    console.out.print(table)
    hours = sum(cost.seconds for cost in costs.values()) / 3600
    console.out.print(
        f"{len(cells)} cells, {hours:.1f} hours of one worker, about "
        f"{hours / workers:.1f} hours with {workers}. The estimate times plain steps "
        f"of the same model on this machine; {_on_top(asked)} come on top.",
        soft_wrap=True,
    )


def _on_top(asked: Sweep) -> str:
    if not asked.audit.get("during"):
        return "codecs, messages and audits"
    return (
        "it includes attacks that learn during training, timed over a step or two; "
        "codecs, messages and audits after training"
    )


def _run(
    cells: list[Cell],
    folder: SweepFolder,
    workers: Workers,
    *,
    order: Order,
    costs: dict[str, Estimate],
) -> SweepState:
    bars = SweepBars(costs)
    running = SweepRun(cells, folder, workers, order=order, watch=bars.show)
    try:
        with bars.shown(running.stop):
            return running.run()
    finally:
        workers.close()


def _conclude(state: SweepState, path: Path, file: str) -> None:
    """Print the outcome; exit with an error code unless every cell is finished."""
    console.out.print(
        f"{len(state.finished)} cells run, {len(state.kept)} kept from before, "
        f"{len(state.failed)} failed, {len(state.left)} left; in {path}",
        soft_wrap=True,
    )
    for key, reason in state.failed.items():
        label = state.cells[key].label
        console.err.print(f"failed: {label}: {reason}", soft_wrap=True, markup=False)
    if state.left:
        console.err.print(
            f"interrupted; resume with: lightsplit sweep {file} --out {path} --resume "
            "(and the same --scale and --set)",
            soft_wrap=True,
        )
        raise SystemExit(console.INTERRUPTED_EXIT)
    if state.failed:
        raise SystemExit(console.ERROR_EXIT)
    console.out.print(
        f"see them: lightsplit report {path} -o report.html", soft_wrap=True
    )
