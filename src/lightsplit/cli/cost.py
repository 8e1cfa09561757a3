"""``lightsplit cost``: bytes, operations and memory of a run before it starts."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from lightsplit.cli import console
from lightsplit.cli.settings import Settings, resolve, takes_experiment
from lightsplit.errors import ConfigError
from lightsplit.experiments import Experiment, from_settings, pieces
from lightsplit.experiments.communication import Traffic, foresee_traffic
from lightsplit.experiments.computation import (
    Computation,
    SideCost,
    measure_computation,
)
from lightsplit.experiments.cuts import make_cuts
from lightsplit.experiments.labels import labels, method
from lightsplit.experiments.settings import to_tables
from lightsplit.results import hand_offs
from lightsplit.results.promises import dp_text

METHODS: tuple[dict[str, Any], ...] = (
    {"codec": "none"},
    {"codec": "raw"},
    *({"codec": "lightsplit-f", "ratio": ratio} for ratio in (8, 16, 32)),
    {"codec": "lightsplit-f", "ratio": 8, "projection": "dct"},
    {"codec": "lightsplit-l", "ratio": 8},
    {"codec": "learned-1x1", "ratio": 8},
    {"codec": "topk", "ratio": 8},
    {"codec": "lightsplit-b", "bits": 16},
)


@takes_experiment
def cost(
    *,
    settings: Settings,
    file: Annotated[
        Path | None,
        typer.Argument(help="experiment file (TOML); options override its settings"),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="training samples; default: the dataset's full size"),
    ] = None,
    test_samples: Annotated[
        int | None,
        typer.Option(
            min=1, help="test samples; default: the published number, if there is one"
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Show the bytes and operations of an experiment, computed from shapes alone.

    Nothing is trained and no data is needed; a run counts exactly these bytes, or fewer
    where codes are as long as their content takes, which is said. Without a codec in
    the options, the usual codecs are compared.

    [bold]Examples[/]

      lightsplit cost --dataset cifar10 --clients 5 --epochs 100

      lightsplit cost --dataset gtsrb --codec lightsplit-l --ratio 16 --json

      lightsplit cost --task my_task.py --samples 5000
    """
    with console.reported_errors():
        experiments = _experiments(file, settings)
        rows = [
            (
                run,
                foresee_traffic(run, samples=samples, test_samples=test_samples),
                measure_computation(run),
            )
            for run in _fitting(experiments)
        ]
    if json:
        console.print_json([_figures(*row) for row in rows])
        return
    console.out.print(_traffic_table([row[:2] for row in rows]))
    console.out.print(
        "Code and output are both ways; the paper counts the code alone. Other: "
        "evaluation, framing, set-up. Step ratio and total ratio: raw over ours, for "
        "all messages of all steps and for everything that crosses. Bits a sample: of "
        "one code, times the epochs; the server can learn no more from the codes of a "
        "sample, whatever attack it makes. Samples are dealt out evenly, and no run "
        "stops early.",
        soft_wrap=True,
    )
    for run, traffic, _ in rows:
        if not traffic.is_exact:
            console.out.print(
                f"{method(run)}: its codes are as long as their content takes; bytes "
                "here are the most, and a run counts what it sends",
                soft_wrap=True,
            )
        if promise := dp_text(traffic.certificate):
            console.out.print(f"{method(run)}: {promise}", soft_wrap=True)
        if dominated := hand_offs.note(traffic.bytes):
            console.out.print(f"{method(run)}: {dominated}", soft_wrap=True)
    for side in ("client", "server"):
        sides = [(run, getattr(made, side)) for run, _, made in rows]
        console.out.print(_computation_table(side, sides))
    console.out.print(
        "Operations in millions per sample; a multiply-add counts as two. "
        "Held: weights, running statistics, projections. Trained: gradients and "
        "optimizer state. Kept: what autograd stores per sample until backward.",
        soft_wrap=True,
    )


def _fitting(experiments: list[Experiment]) -> Iterator[Experiment]:
    """Yield the first experiment, and of the others those whose codec fits the cut."""
    first, *others = experiments
    yield first
    for run in others:
        try:
            make_cuts(run, pieces.load_parts(run))
        except ConfigError as error:
            console.warn(f"left out: {method(run)}: {error}")
        else:
            yield run


def _experiments(file: Path | None, settings: Settings) -> list[Experiment]:
    chosen = resolve(file, settings)
    if file is not None or "codec" in to_tables(settings):
        return [chosen]
    return [from_settings({**settings, **method}) for method in METHODS]


def _traffic_table(rows: list[tuple[Experiment, Traffic]]) -> Table:
    label, largest = labels(rows[0][0]), max(row[1].bytes["total"] for row in rows)
    divisor, unit = (2**30, "GiB") if largest >= 2**30 else (2**20, "MiB")
    table = Table(
        title=f"{unit}: {label['task']}, {label['setting']}, {label['schedule']}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
    )
    table.add_column("codec", overflow="fold", min_width=12, max_width=16)
    for column in ("k", "cut ratio", "code", "output", "hand off", "other", "total"):
        table.add_column(column.replace(" ", "\n", 1), justify="right", min_width=4)
    for column in ("step ratio", "total ratio", "bits a sample"):
        table.add_column(column.replace(" ", "\n", 1), justify="right", min_width=4)
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
            method(run),
            f"{traffic.code_size:,}",
            _ratio(traffic.activation_size, traffic.code_size),
            *(f"{count:.1f}" for count in sums),
            "–" if traffic.step_ratio is None else f"{traffic.step_ratio:.3g}x",
            f"{traffic.total_ratio:.3g}x",
            f"{traffic.certificate['bits_per_sample']:,}",
        )
    return table


def _ratio(activation_size: int, code_size: int) -> str:
    return f"{activation_size / code_size:.4g}x" if code_size else "–"


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
            method(run),
            f"{part.parameters:,}",
            f"{part.forward_flops / 1e6:.2f}",
            f"{part.backward_flops / 1e6:.2f}",
            f"{part.held_bytes / 2**20:.2f}",
            f"{part.training_bytes / 2**20:.1f}",
            f"{part.sample_bytes / 2**10:.1f}",
        )
    return table


def _figures(run: Experiment, traffic: Traffic, made: Computation) -> dict[str, Any]:
    counted = asdict(traffic)
    return {
        "experiment": run.tables(),
        "certificate": counted.pop("certificate"),
        "traffic": {
            **counted,
            "step_ratio": traffic.step_ratio,
            "total_ratio": traffic.total_ratio,
        },
        "computation": asdict(made),
    }
