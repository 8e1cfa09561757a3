"""What commands that run sweeps share: forecasts, workers, progress."""

from pathlib import Path

from rich.table import Table

from lightsplit import extras
from lightsplit.audits import AuditOptions
from lightsplit.cli import console
from lightsplit.cli.sweep_progress import SweepBars
from lightsplit.errors import ConfigError
from lightsplit.reports.tables import duration_text
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
    threads_each,
)


def check_extras(**is_needed: bool) -> None:
    """Raise an error about a missing extra before anything is written."""
    for extra, needed in is_needed.items():
        if needed:
            extras.check(extra, purpose="this sweep")


def make_workers(
    count: int, ray: str | None, *, cpus: float = 1, gpus: float = 0
) -> Workers:
    """Return processes of this machine, or those of a Ray cluster."""
    if ray:
        return RayWorkers(ray, cpus=cpus, gpus=gpus, say=console.warn)
    return LocalWorkers(count)


def common_order(path: Path, data_dir: Path | None) -> Order:
    """Return the fields that the orders of all cells share."""
    return Order(
        key="",
        settings={},
        sweep_folder=str(path.resolve()),
        folder_name="",
        data_dir=str(data_dir.resolve()) if data_dir else "",
    )


def estimates(
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


def show_plan(
    asked: Sweep,
    cells: list[Cell],
    costs: dict[str, Estimate],
    workers: int,
    client_flops: dict[str, int] | None = None,
) -> None:
    """Print every cell with its estimated cost, and with its client's if known."""
    table = Table(title=asked.title or asked.name, title_justify="left")
    table.add_column("cell", overflow="fold")
    columns = ["steps", "bytes", "minutes"]
    columns += [] if client_flops is None else ["client MFLOPs"]
    for column in columns:
        table.add_column(column, justify="right")
    for cell in cells:
        cost = costs[cell.key]
        table.add_row(
            cell.label,
            f"{cost.steps:,}",
            console.bytes_text(cost.bytes),
            f"{cost.seconds / 60:.1f}",
            *([f"{client_flops[cell.key] / 1e6:.2f}"] if client_flops else []),
        )
    console.out.print(table)
    seconds = sum(cost.seconds for cost in costs.values())
    console.out.print(
        f"{len(cells)} cells, {duration_text(seconds)} of one worker, about "
        f"{duration_text(seconds / workers)} with {workers}. The estimate times plain "
        f"steps of the same model on this machine; {_on_top(asked)} come on top.",
        soft_wrap=True,
    )


def _on_top(asked: Sweep) -> str:
    if not asked.audit.get("during"):
        return "codecs, messages and audits"
    return (
        "it includes attacks that learn during training, timed over a step or two; "
        "codecs, messages and audits after training"
    )


def run_cells(
    cells: list[Cell],
    folder: SweepFolder,
    workers: Workers,
    *,
    order: Order,
    costs: dict[str, Estimate],
) -> SweepState:
    """Run the cells with progress bars, and return how each of them ended."""
    bars = SweepBars(costs)
    running = SweepRun(cells, folder, workers, order=order, watch=bars.show)
    try:
        with bars.shown(running.stop):
            return running.run()
    finally:
        workers.close()
