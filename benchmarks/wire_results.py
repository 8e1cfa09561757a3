"""Accuracy and bytes of the wire presets: the table of docs/results/wire.md.

    python -m benchmarks.wire_results --dataset fashion-mnist --seeds 0 1 2
    python -m benchmarks.wire_results --dataset cifar10


Each variant and seed is one ``lightsplit train`` in a folder of its own under --out. A
run that is there and finished is read, one that was interrupted is gone on with, so the
command can be given again. CSV on standard output, bytes per sample by message.
"""

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

from lightsplit.experiments import from_settings, run
from lightsplit.formats import STEP_KINDS
from lightsplit.results import RunFolder

VARIANTS: dict[str, dict[str, Any]] = {
    "raw": {"codec": "raw"},
    "paper": {"wire": "paper"},
    "half": {"wire": "half"},
    "lean": {"wire": "lean"},
    "max": {"wire": "max"},
    "lean linear": {"wire": "lean", "output_codec": "linear"},
    "max linear": {"wire": "max", "output_codec": "linear"},
}
_PRESETS = ["raw", "paper", "half", "lean", "max"]


def main() -> None:
    """Run what is missing and print the table."""
    arguments = _arguments()
    rows = csv.writer(sys.stdout)
    rows.writerow(
        ["dataset", "variant", "seed", "accuracy", "best", "step_ratio", "code_bits"]
        + [f"{kind}_bytes" for kind in STEP_KINDS]
        + ["hand_off_bytes", "steps", "seconds"]
    )
    for seed in arguments.seeds:
        for variant in arguments.variants:
            record = _record(arguments, variant, seed)
            rows.writerow([arguments.dataset, variant, seed, *_figures(record)])
            sys.stdout.flush()


def _record(arguments: argparse.Namespace, variant: str, seed: int) -> dict[str, Any]:
    path = arguments.out / f"{arguments.dataset}-{variant.replace(' ', '-')}-{seed}"
    done = path / "record.json"
    if not done.exists():
        settings = {
            "turn_steps": 1,
            "dataset": arguments.dataset,
            "clients": 10,
            "epochs": arguments.epochs,
            "train_limit": arguments.train_limit,
            "seed": seed,
            **VARIANTS[variant],
        }
        folder = RunFolder(path) if path.exists() else RunFolder.create(path)
        run(from_settings(settings), folder)
    record: dict[str, Any] = json.loads(done.read_text())
    return record


def _figures(record: dict[str, Any]) -> list[Any]:
    counts, samples = record["bytes"], record["samples"]
    return [
        round(record["test_accuracy"], 4),
        round(record["best_test_accuracy"], 4),
        round(record["step_ratio"], 2),
        record["code_bits"],
        *(round(counts[kind] / samples, 1) for kind in STEP_KINDS),
        counts["hand_off"],
        record["steps"],
        round(record["seconds"]),
    ]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="fashion-mnist")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--train-limit", type=int)
    parser.add_argument("--out", type=Path, default=Path("runs/wire"))
    parser.add_argument("--variants", nargs="+", default=_PRESETS, choices=VARIANTS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
