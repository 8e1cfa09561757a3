"""``lightsplit demo``: train, audit and report on the embedded digits."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from lightsplit import extras
from lightsplit.audits import AuditOptions
from lightsplit.cli import console
from lightsplit.cli.audit import audit_in
from lightsplit.cli.train import train_in
from lightsplit.experiments import from_settings
from lightsplit.reports import find_runs, make_report, write_page
from lightsplit.results import RunFolder, main_leakage
from lightsplit.threads import torch_threads

HIDES = "lightsplit-b 12 bits"
ALONE = "none"  # nothing is sent: what the clients reach without the server
RUNS: dict[str, dict[str, Any]] = {
    ALONE: {"codec": "none"},
    "raw": {"codec": "raw"},
    "lightsplit-f 8x": {"codec": "lightsplit-f", "ratio": 8},
    "lightsplit-f 32x": {"codec": "lightsplit-f", "ratio": 32},
    HIDES: {
        "codec": "lightsplit-b",
        "bits": 12,
        "objective": ["class-codes", "conditional-entropy:budget=2"],
    },
}
AUDIT = AuditOptions(attacks=("linear", "decoder", "exact-table", "label-hint"))


def demo(
    out: Annotated[
        Path | None,
        typer.Option(help="folder to keep the runs in; default: a temporary folder"),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="passes over the data")] = 10,
) -> None:
    """Train with raw and LightSplit codecs on the digits, audit and compare them.

    Two of the codecs save bytes and hide next to nothing; the last one hides.
    """
    with console.reported_errors(), torch_threads(1):
        for extra in ("audit", "reports"):
            extras.check(extra, purpose="the demo")
        base = out or Path(tempfile.mkdtemp(prefix="lightsplit-demo-"))
        records = {name: _run(base, name, epochs) for name in RUNS}
        made = make_report(*find_runs([base]), title="LightSplit on the digits")
        write_page(made, base / "report.html")
    console.out.print(_costs(records))
    console.out.print(
        "The ratio at the cut counts the code and its gradient, as the paper does. The "
        "ratio of the step counts all four messages: output and its gradient cross the "
        "wire too.\n"
    )
    console.out.print(_leaks(records))
    console.out.print(
        "The worst case if the server knows codes of other clients' images: the best "
        "of a linear estimate, a trained decoder and a table of all codes, on 64 "
        "images, beside the best trivial guess; re-id.: the true image is the nearest "
        "of the 64. Distinct: distinct codes over test samples; no attack on one code "
        "per sample can name a larger share of those. Labels are "
        "guessed from the output gradients with one known sample per class. A quick "
        "look at small images; docs/auditing.md says how to read it.\n"
    )
    console.out.print(f"{_verdict(records)}\n", soft_wrap=True)
    console.out.print(f"runs and pictures: {base}", soft_wrap=True)
    console.out.print(f"all on one page:   {base / 'report.html'}", soft_wrap=True)


def _run(base: Path, name: str, epochs: int) -> dict[str, Any]:
    experiment = from_settings({**RUNS[name], "epochs": epochs})
    folder = RunFolder.create(base / name.replace(" ", "-"))
    train_in(experiment, folder)
    if name != ALONE:
        audit_in(folder, AUDIT)
    return folder.read_record()


def _costs(records: dict[str, dict[str, Any]]) -> Table:
    table = _table(
        "digits, 5 clients, shared heads, cut l2, one seed",
        (
            "codec",
            "accuracy",
            "ratio at the cut",
            "of the step",
            "in all",
            "step bytes",
        ),
    )
    for name, record in records.items():
        kinds = ("code", "output", "output_gradient", "code_gradient")
        table.add_row(
            name,
            f"{record['test_accuracy']:.2%}",
            _times(record["ratio"], ".4g"),
            _times(record["step_ratio"], ".3g"),
            f"{record['total_ratio']:.3g}x",
            console.bytes_text(sum(record["bytes"][kind] for kind in kinds)),
        )
    return table


def _times(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}x"


def _verdict(records: dict[str, dict[str, Any]]) -> str:
    """Return which setting hides, beside what the clients reach alone."""
    hides, alone = records[HIDES], records[ALONE]
    leak = main_leakage(hides)["reidentification"]["mean"]
    raw = main_leakage(records["raw"])["reidentification"]["mean"]
    return (
        f"Raw lets the server name {raw:.0%} of the images, {HIDES} {leak:.0%}, at "
        f"{hides['test_accuracy']:.2%} accuracy; without the server the clients reach "
        f"{alone['test_accuracy']:.2%}. docs/privacy.md says how to choose."
    )


def _leaks(records: dict[str, dict[str, Any]]) -> Table:
    table = _table(
        "what leaks",
        ("codec", "SSIM", "trivial", "re-id.", "trivial", "distinct", "labels"),
    )
    for name, record in records.items():
        if name == ALONE:
            continue
        leakage = main_leakage(record)
        labels = _entry(record, "label-hint", "output_gradient")
        table.add_row(
            name,
            f"{leakage['ssim']['mean']:.2f}",
            f"{_trivial(record, 'ssim'):.2f}",
            f"{leakage['reidentification']['mean']:.0%}",
            f"{_trivial(record, 'reidentification'):.0%}",
            f"{record['certificate']['reidentification_bound']:.0%}",
            f"{labels['metrics']['accuracy']['mean']:.0%}",
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
