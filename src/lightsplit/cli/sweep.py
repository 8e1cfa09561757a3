"""``lightsplit sweep``: every cell of a grid, in parallel, each one once."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lightsplit.cli import console
from lightsplit.cli.options import (
    CheckpointEvery,
    Cpus,
    DataDir,
    DryRun,
    Gpus,
    Ray,
    ResumeCells,
    TensorBoard,
    WorkerCount,
)
from lightsplit.cli.sweeping import (
    check_extras,
    common_order,
    estimates,
    make_workers,
    run_cells,
    show_plan,
)
from lightsplit.experiments.settings import parse_change
from lightsplit.sweeps import (
    SweepFolder,
    SweepState,
    expand,
    find_sweep,
    make_audit_options,
    read_sweep,
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
    resume: ResumeCells = False,
    workers: WorkerCount = None,
    ray: Ray = None,
    cpus: Cpus = 1,
    gpus: Gpus = 0,
    data_dir: DataDir = None,
    checkpoint_every: CheckpointEvery = None,
    tensorboard: TensorBoard = False,
    dry_run: DryRun = False,
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
        costs = estimates(cells, count, audit, data_dir)
        if dry_run:
            show_plan(asked, cells, costs, count)
            return
        check_extras(ray=bool(ray), tensorboard=tensorboard, audit=audit is not None)
        path = out or Path("runs") / "-".join(filter(None, (asked.name, asked.scale)))
        with SweepFolder(path).opened(resume=resume) as folder:
            folder.write(asked)
            order = replace(
                common_order(path, data_dir),
                audit=audit,
                checkpoint_every=checkpoint_every or 0,
                has_tensorboard=tensorboard,
            )
            pool = make_workers(count, ray, cpus=cpus, gpus=gpus)
            state = run_cells(cells, folder, pool, order=order, costs=costs)
    _conclude(state, path, file)


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
