"""The paper's backdoor test, shortened: who is noticed, by codec, p and alpha.

    python -m benchmarks.backdoors --out DIR [--train-limit N] [--epochs N] [--only P]

Fashion-MNIST, 10 clients, one of them with a BadNets patch. In every cell one training
run is judged twice at each epoch's end, on mean codes and on mean outputs. A cell that
has its file in DIR/cells is not run again; DIR/backdoors.csv and .json are written anew
from all files that are there.
"""

import argparse
import csv
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lightsplit.backdoors import (
    EvidenceCollector,
    MessageReading,
    Verdict,
    make_detector,
    score_detection,
)
from lightsplit.experiments import Job, build, make_experiment, make_record
from lightsplit.results import atomic, finite
from lightsplit.transports import through

CODECS = {
    "raw": {"codec": "raw"},
    "learned-1x1": {"codec": "learned-1x1", "ratio": 16},
    "lightsplit-f": {"codec": "lightsplit-f", "ratio": 16},
    "lightsplit-l": {"codec": "lightsplit-l", "ratio": 16},
}
BASELINE = {
    "dataset": "fashion-mnist",
    "clients": 10,
    "alpha": 1e7,
    "trigger": "badnets",
    "malicious": 0.1,
    "poison_ratio": 0.3,
    "target_class": 0,
}
SWEEPS = {"poison_ratio": (0.1, 0.2, 0.5, 0.8), "alpha": (0.1, 1.0, 10.0)}
SEEDS = (0, 1, 2)
DETECTORS = ("cosine-code", "cosine-output")


def main() -> None:
    """Run what is missing and write the tables."""
    options = _options()
    cells = options.out / "cells"
    cells.mkdir(parents=True, exist_ok=True)
    scale = {
        "train_limit": options.train_limit,
        "test_limit": options.test_limit,
        "epochs": options.epochs,
    }
    for name, settings in _cells():
        file = cells / f"{name}.json"
        if options.only in name and not file.exists():
            began = time.perf_counter()
            figures = _run({**BASELINE, **scale, **settings})
            atomic.write_text(file, json.dumps(finite(figures), indent=2))
            print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    _write_tables(options.out, sorted(cells.glob("*.json")))


def _cells() -> Iterator[tuple[str, dict[str, Any]]]:
    for seed in SEEDS:
        for codec, own in CODECS.items():
            yield f"baseline-{codec}-s{seed}", {**own, "seed": seed}
    for setting, values in SWEEPS.items():
        for value in values:
            for codec, own in CODECS.items():
                yield f"{setting}-{value:g}-{codec}-s0", {**own, setting: value}


def _run(settings: dict[str, Any]) -> dict[str, Any]:
    """Train one cell; return its record and the verdicts of both detectors."""
    job = build(make_experiment(settings))
    collector = EvidenceCollector(
        ("code", "output"),
        MessageReading(job.codec, job.output_codec),
        job.parts.backbone,
    )
    for client in job.trainer.clients:
        client.send = through(collector, client.send)
    verdicts: dict[str, list[dict[str, Any]]] = {name: [] for name in DETECTORS}
    for done in job.trainer.run():
        if done.turn.ends_epoch:
            window = collector.window()
            collector.clear()
            for name, kept in verdicts.items():
                detector = make_detector(name, clients=job.experiment.clients)
                kept.append(_figures(job, detector.judge(window)))
    return {"record": make_record(job), "verdicts": verdicts}


def _figures(job: Job, verdict: Verdict) -> dict[str, Any]:
    malicious = job.experiment.malicious_indices()
    ranked = sorted(verdict.scores, reverse=True)
    score = verdict.scores[malicious[0]]
    return {
        "score": score,
        "rank": 1 + ranked.index(score),
        "flagged": list(verdict.flagged),
        "scores": list(verdict.scores),
        "f1": score_detection(verdict.flagged, malicious).f1,
        "false_alarm_rate": verdict.false_alarm_rate,
    }


def _write_tables(out: Path, files: list[Path]) -> None:
    rows = [row for file in files for row in _rows(file)]
    if not rows:
        return
    atomic.write_text(out / "backdoors.json", json.dumps(rows, indent=2))
    with (out / "backdoors.csv").open("w", newline="") as stream:
        table = csv.DictWriter(stream, rows[0].keys())
        table.writeheader()
        table.writerows(rows)


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    figures = json.loads(file.read_text())
    record, settings = figures["record"], figures["record"]["experiment"]
    for detector, verdicts in figures["verdicts"].items():
        last = verdicts[-1]
        yield {
            "cell": file.stem,
            "codec": settings["codec"],
            "ratio": round(record["ratio"], 2),
            "alpha": settings["alpha"],
            "poison_ratio": settings["poison_ratio"],
            "seed": settings["seed"],
            "train_limit": settings["train_limit"],
            "epochs": settings["epochs"],
            "detector": detector,
            "mad_z": round(last["score"], 3),
            "rank": last["rank"],
            "f1": last["f1"],
            "mad_z_per_epoch": " ".join(f"{one['score']:.2f}" for one in verdicts),
            "test_accuracy": record["test_accuracy"],
            "success_rate": record["backdoor"]["success_rate"],
            "unmarked_rate": record["backdoor"]["unmarked_rate"],
        }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--train-limit", type=int, default=6_000)
    parser.add_argument("--test-limit", type=int, default=2_000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--only", default="", help="cells whose name holds this")
    return parser.parse_args()


if __name__ == "__main__":
    main()
