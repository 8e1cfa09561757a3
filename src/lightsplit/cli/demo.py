"""``lightsplit demo``: train, attack, report and advise on the embedded digits."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from lightsplit.advice import LADDER, Advice, Limits
from lightsplit.cli import console
from lightsplit.cli.advise import Search, end_if_unfinished, make_plan, show_advice
from lightsplit.cli.sweeping import check_extras, estimates, make_workers
from lightsplit.results import blind_guesses, main_leakage
from lightsplit.sweeps import Sweep, SweepFolder

HIDES = ["class-codes", "conditional-entropy:budget=2"]
METHODS: tuple[dict[str, Any], ...] = (
    {"codec": "none"},  # what the clients reach without the server
    {"codec": "raw"},
    {"codec": "lightsplit-f", "ratio": 8},
    {"codec": "lightsplit-f", "ratio": 32},
    {"codec": "lightsplit-b", "bits": 12},
    {"codec": "lightsplit-b", "bits": 12, "objective": [HIDES]},
)
AUDIT: dict[str, Any] = {"attacks": [*LADDER, "label-hint"], "images": 200}
LIMITS = Limits(reidentification=0.1, ssim_gain=0.05)
Record = dict[str, Any]


def demo(
    out: Annotated[
        Path, typer.Option(help="folder of the runs; finished ones are kept")
    ] = Path("runs/demo"),
    epochs: Annotated[int, typer.Option(min=1, help="passes over the data")] = 10,
) -> None:
    """Train with codes that hide and codes that do not, attack them, and advise.

    The head is shallow, so the clients need the server. Raw activations and random
    projections give every image away; 12 trained bits that may say little beyond the
    class keep the accuracy and hide the images. The last lines are those of 'lightsplit
    advise': the setting that works.
    """
    with console.reported_errors():
        check_extras(audit=True, reports=True)
        search = make_plan(_sweep(epochs), LIMITS, AUDIT)
        count = os.cpu_count() or 1
        with SweepFolder(out).opened(resume=True) as folder:
            costs = estimates(search.cells, count, search.audit, None)
            state = search.run(folder, make_workers(count, None), costs)
            end_if_unfinished(state)
            advice = search.conclude(folder)
    _show(search, advice)
    show_advice(advice, out)
    if state.failed:
        raise SystemExit(console.ERROR_EXIT)


def _sweep(epochs: int) -> Sweep:
    return Sweep(
        name="demo",
        title="LightSplit on the digits",
        common={"dataset": "digits", "cut": "l1", "epochs": epochs},
        cells=METHODS,
    )


def _show(search: Search, advice: Advice) -> None:
    records = {
        one.point.method: one.point.group.runs[0].record for one in advice.candidates
    }
    console.out.print(_costs(records))
    console.out.print(
        "The ratio at the cut counts the code and its gradient, as the paper does. The "
        "ratio of the step counts all four messages: output and its gradient cross the "
        "wire too.\n"
    )
    audited = {name: record for name, record in records.items() if "audit" in record}
    console.out.print(_leaks(audited))
    console.out.print(
        "The worst case if the server knows codes of other clients' images: the best "
        "of a linear estimate, a trained decoder and tables of all codes, on "
        f"{AUDIT['images']} images, beside the best guess without any code; named: the "
        "true image is the nearest of all. Distinct: distinct codes over test samples; "
        "no attack on one code per sample can name a larger share of those. Labels are "
        "guessed from the output gradients with one known sample per class. A quick "
        "look at small images; docs/auditing.md says how to read it.\n"
    )
    limits = search.limits
    console.out.print(
        f"Which setting names at most {limits.reidentification:.0%} of the images, "
        f"with at most {limits.ssim_gain:g} SSIM over the class mean?",
        soft_wrap=True,
    )


def _costs(records: dict[str, Record]) -> Table:
    table = _table(
        "digits, 5 clients, shared heads, cut l1, one seed",
        ("codec", "accuracy", "at cut", "of step", "in all", "step bytes"),
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


def _leaks(records: dict[str, Record]) -> Table:
    table = _table(
        "what leaks",
        ("codec", "SSIM", "guess", "named", "guess", "distinct", "labels"),
    )
    for name, record in records.items():
        leakage = main_leakage(record)
        labels = _labels(record)
        table.add_row(
            name,
            f"{leakage['ssim']['mean']:.2f}",
            f"{_guess(record, 'ssim'):.2f}",
            f"{leakage['reidentification']['mean']:.0%}",
            f"{_guess(record, 'reidentification'):.0%}",
            f"{record['certificate']['reidentification_bound']:.0%}",
            f"{labels['metrics']['accuracy']['mean']:.0%}",
        )
    return table


def _guess(record: Record, metric: str) -> float:
    entries = blind_guesses(record["audit"])
    return max(float(entry["metrics"][metric]["mean"]) for entry in entries)


def _labels(record: Record) -> Record:
    entries: list[Record] = record["audit"]
    wanted = ("label-hint", "output_gradient")
    return next(e for e in entries if (e["attack"], e.get("message")) == wanted)


def _table(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        is_name = column == "codec"
        how = {"overflow": "fold", "min_width": 21} if is_name else {"justify": "right"}
        table.add_column(column, **how)
    return table
