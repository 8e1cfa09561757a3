"""``lightsplit cost``: bytes, operations and memory before anything is run."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from lightsplit.cli import console
from lightsplit.cli.settings import Settings, resolve, takes_experiment
from lightsplit.experiments import Experiment, make_experiment
from lightsplit.experiments.communication import Traffic, foresee_traffic
from lightsplit.experiments.computation import (
    Computation,
    SideCost,
    measure_computation,
)

METHODS: tuple[dict[str, Any], ...] = (
    {"codec": "raw"},
    *({"codec": "lightsplit-f", "ratio": ratio} for ratio in (8, 16, 32)),
    {"codec": "lightsplit-f", "ratio": 8, "projection": "dct"},
    {"codec": "lightsplit-l", "ratio": 8},
    {"codec": "learned-1x1", "ratio": 8},
    {"codec": "topk", "ratio": 8},
)
OWN = {"codec", "ratio", "projection", "scale", "hidden"}


@takes_experiment
def cost(
    *,
    settings: Settings,
    file: Annotated[
        Path | None,
        typer.Argument(help="experiment file (TOML); options override what it says"),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="training samples; 0: the published number")
    ] = 0,
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Show what an experiment will send and compute, from shapes alone.

    Nothing is trained and no data is needed; the bytes are those that a run counts.
    Without a codec in the options the usual ones are compared.

    [bold]Examples[/]

      lightsplit cost --dataset cifar10 --clients 5 --epochs 100

      lightsplit cost --dataset gtsrb --codec lightsplit-l --ratio 16 --json
    """
    with console.reported_errors():
        experiments = _experiments(file, settings)
        rows = [
            (run, foresee_traffic(run, samples=samples), measure_computation(run))
            for run in experiments
        ]
    if json:
        console.print_json([_figures(*row) for row in rows])
        return
    console.out.print(_traffic_table([row[:2] for row in rows]))
    console.out.print(
        "Code and output are both ways; the paper counts the code alone. Other: "
        "evaluation, framing, set-up. Samples are dealt out evenly, and no run stops "
        "early.",
        soft_wrap=True,
    )
    for side in ("client", "server"):
        sides = [(run, getattr(made, side)) for run, _, made in rows]
        console.out.print(_computation_table(side, sides))
    console.out.print(
        "Operations in millions per sample; an addition and a multiplication are two. "
        "Held: weights, running statistics, projections. Trained: gradients and slots "
        "of the optimizer. Kept: of a sample, by autograd, from forward to backward.",
        soft_wrap=True,
    )


def _experiments(file: Path | None, settings: Settings) -> list[Experiment]:
    chosen = resolve(file, settings)
    if file is not None or OWN & settings.keys():
        return [chosen]
    return [make_experiment({**settings, **method}) for method in METHODS]


def _traffic_table(rows: list[tuple[Experiment, Traffic]]) -> Table:
    first, largest = rows[0][0], max(row[1].bytes["total"] for row in rows)
    divisor, unit = (2**30, "GiB") if largest >= 2**30 else (2**20, "MiB")
    table = Table(
        title=f"{unit}: {first.dataset}, {first.model}, cut {first.cut}, "
        f"{first.clients} clients, {first.heads} heads, {first.epochs} epochs",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
    )
    table.add_column("codec", no_wrap=True)
    for column in ("k", "cut ratio", "code", "output", "hand off", "other", "total"):
        table.add_column(column, justify="right")
    table.add_column("step ratio", justify="right")
    for run, traffic in rows:
        counts = traffic.bytes
        groups = (
            ("code", "code_gradient"),
            ("output", "output_gradient"),
            ("hand_off",),
            ("labels", "evaluation", "framing", "setup"),
            ("total",),
        )
        sums = (sum(counts[kind] for kind in kinds) / divisor for kinds in groups)
        table.add_row(
            _name(run),
            f"{traffic.code_size:,}",
            f"{traffic.activation_size / traffic.code_size:.4g}x",
            *(f"{count:.1f}" for count in sums),
            f"{traffic.step_ratio:.3g}x",
        )
    return table


def _computation_table(side: str, rows: list[tuple[Experiment, SideCost]]) -> Table:
    table = Table(
        title=side, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True
    )
    table.add_column("codec", no_wrap=True)
    for column in ("weights", "forward", "backward"):
        table.add_column(column, justify="right")
    for column in ("held MiB", "trained MiB", "kept KiB"):
        table.add_column(column, justify="right")
    for run, part in rows:
        table.add_row(
            _name(run),
            f"{part.parameters:,}",
            f"{part.forward_flops / 1e6:.2f}",
            f"{part.backward_flops / 1e6:.2f}",
            f"{part.held_bytes / 2**20:.2f}",
            f"{part.training_bytes / 2**20:.1f}",
            f"{part.sample_bytes / 2**10:.1f}",
        )
    return table


def _name(run: Experiment) -> str:
    if run.codec == "raw":
        return "raw"
    drawn = f" {run.projection}" if run.projection not in ("", "haar") else ""
    return f"{run.codec} {run.ratio:g}x{drawn}"


def _figures(run: Experiment, traffic: Traffic, made: Computation) -> dict[str, Any]:
    return {
        "experiment": run.model_dump(),
        "traffic": {**asdict(traffic), "step_ratio": traffic.step_ratio},
        "computation": asdict(made),
    }
