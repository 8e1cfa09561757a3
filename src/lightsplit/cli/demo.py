"""``lightsplit demo``: train, audit and report on the embedded digits."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from lightsplit.audits import AuditOptions
from lightsplit.cli import console
from lightsplit.cli.audit import audit_in
from lightsplit.cli.train import train_in
from lightsplit.experiments import make_experiment
from lightsplit.reports import find_runs, make_report, write_page
from lightsplit.results import RunFolder
from lightsplit.threads import torch_threads

RUNS: dict[str, dict[str, Any]] = {
    "raw": {"codec": "raw"},
    "lightsplit-f 8x": {"codec": "lightsplit-f", "ratio": 8},
    "lightsplit-f 32x": {"codec": "lightsplit-f", "ratio": 32},
}
AUDIT = AuditOptions(attacks=("linear", "decoder", "label-hint"))


def demo(
    out: Annotated[
        Path | None,
        typer.Option(help="keep the run folders here; default: a temporary folder"),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="passes over the data")] = 10,
) -> None:
    """Train raw and LightSplit on the embedded digits, audit and compare them."""
    base = out or Path(tempfile.mkdtemp(prefix="lightsplit-demo-"))
    with console.reported_errors(), torch_threads(1):
        records = {name: _run(base, name, epochs) for name in RUNS}
        made = make_report(*find_runs([base]), title="LightSplit on the digits")
        write_page(made, base / "report.html")
    console.out.print(_costs(records))
    console.out.print(
        "The ratio at the cut counts code and code gradient, as the paper does. The "
        "ratio of the step counts all four messages: output and its gradient cross the "
        "wire too.\n"
    )
    console.out.print(_leaks(records))
    console.out.print(
        "What a server gets that knows codes of other clients' images: the worst of a "
        "linear estimate and a trained decoder, on 64 images, beside the best trivial "
        "guess; re-id.: the true image is the nearest of the 64. Labels are "
        "guessed from the output gradients with one known sample per class. A quick "
        "look at small images; docs/auditing.md says how to read it.\n"
    )
    console.out.print(f"runs and pictures: {base}", soft_wrap=True)
    console.out.print(f"all on one page:   {base / 'report.html'}", soft_wrap=True)


def _run(base: Path, name: str, epochs: int) -> dict[str, Any]:
    experiment = make_experiment({**RUNS[name], "epochs": epochs})
    folder = RunFolder.create(base / name.replace(" ", "-"))
    train_in(experiment, folder)
    audit_in(folder, AUDIT)
    return folder.read_record()


def _costs(records: dict[str, dict[str, Any]]) -> Table:
    table = _table(
        "digits, 5 clients, shared heads, cut l2, one seed",
        ("codec", "accuracy", "ratio at the cut", "of the step", "step bytes"),
    )
    for name, record in records.items():
        kinds = ("code", "output", "output_gradient", "code_gradient")
        table.add_row(
            name,
            f"{record['test_accuracy']:.2%}",
            f"{record['ratio']:.4g}x",
            f"{record['step_ratio']:.3g}x",
            console.bytes_text(sum(record["bytes"][kind] for kind in kinds)),
        )
    return table


def _leaks(records: dict[str, dict[str, Any]]) -> Table:
    table = _table(
        "what leaks",
        ("codec", "SSIM", "trivial", "re-id.", "trivial", "labels", "chance"),
    )
    for name, record in records.items():
        leakage = record["leakage"]
        labels = _entry(record, "label-hint", "output_gradient")
        table.add_row(
            name,
            f"{leakage['ssim']['mean']:.2f}",
            f"{_trivial(record, 'ssim'):.2f}",
            f"{leakage['reidentification']['mean']:.0%}",
            f"{_trivial(record, 'reidentification'):.0%}",
            f"{labels['metrics']['accuracy']['mean']:.0%}",
            f"{labels['chance']:.0%}",
        )
    return table


def _trivial(record: dict[str, Any], metric: str) -> float:
    entries = [entry for entry in record["audit"] if entry["kind"] == "trivial"]
    return max(float(entry["metrics"][metric]["mean"]) for entry in entries)


def _entry(record: dict[str, Any], attack: str, message: str) -> dict[str, Any]:
    entries: list[dict[str, Any]] = record["audit"]
    wanted = (attack, message)
    return next(e for e in entries if (e["attack"], e.get("message")) == wanted)


def _table(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        is_name = column == "codec"
        table.add_column(
            column, justify="left" if is_name else "right", no_wrap=is_name
        )
    return table
