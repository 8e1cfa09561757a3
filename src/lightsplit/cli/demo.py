"""``lightsplit demo``: the whole of it in a minute, on the embedded digits."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from lightsplit.cli import console
from lightsplit.cli.train import train_in
from lightsplit.experiments import make_experiment
from lightsplit.results import RunFolder

RUNS: dict[str, dict[str, Any]] = {
    "raw": {"codec": "raw"},
    "lightsplit-f 8x": {"codec": "lightsplit-f", "ratio": 8},
    "lightsplit-f 32x": {"codec": "lightsplit-f", "ratio": 32},
    "lightsplit-l 8x": {"codec": "lightsplit-l", "ratio": 8},
}


def demo(
    out: Annotated[
        Path | None,
        typer.Option(help="keep the run folders here; default: a temporary folder"),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="passes over the data")] = 10,
) -> None:
    """Train raw and LightSplit on the embedded digits and compare them."""
    base = out or Path(tempfile.mkdtemp(prefix="lightsplit-demo-"))
    with console.reported_errors():
        records = {name: _run(base, name, epochs) for name in RUNS}
    console.out.print(_table(records))
    console.out.print(
        "The ratio at the cut counts code and code gradient, as the paper does. The "
        "ratio of the step counts all four messages: output and its gradient cross the "
        "wire too."
    )
    console.out.print(f"run folders: {base}", soft_wrap=True)


def _run(base: Path, name: str, epochs: int) -> dict[str, Any]:
    experiment = make_experiment({**RUNS[name], "epochs": epochs})
    folder = RunFolder.create(base / name.replace(" ", "-"))
    return train_in(experiment, folder)


def _table(records: dict[str, dict[str, Any]]) -> Table:
    table = Table(
        title="digits, 5 clients, shared heads, cut l2, one seed", title_justify="left"
    )
    for column in (
        "codec",
        "accuracy",
        "ratio at the cut",
        "of the step",
        "step bytes",
    ):
        table.add_column(column, justify="left" if column == "codec" else "right")
    for name, record in records.items():
        sent = sum(
            record["bytes"][kind]
            for kind in ("code", "output", "output_gradient", "code_gradient")
        )
        table.add_row(
            name,
            f"{record['test_accuracy']:.2%}",
            f"{record['ratio']:.4g}x",
            f"{record['step_ratio']:.3g}x",
            console.bytes_text(sent),
        )
    return table
