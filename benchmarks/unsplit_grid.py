"""UnSplit against raw, learned-1x1 and lightsplit-f, in both forms, as one CSV.

    python -m benchmarks.unsplit_grid --out DIR [--epochs 20 --iterations 1000 …]

Victims are mnistnet in the U-shape with one client, amsgrad 1e-3 and batch 64. Attacked
are the first test images of the ten classes. Everything finished is kept in DIR:
started again, the script goes on where it was stopped, with the same scale.

Reconstructions are clipped to [0, 1] before they are scored; the two scale-free scores
take them as they are. The all-black and the mean training image stand beside them.
"""

import argparse
import csv
import io
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.unsplit_cells import (
    Cell,
    Scale,
    Trained,
    cells,
    first_of_each_class,
    trained,
)
from lightsplit.attacks.unsplit import UnSplit, observed
from lightsplit.attacks.unsplit_loop import Schedule, invert
from lightsplit.data import DATASETS, Dataset, data_folder
from lightsplit.metrics import evaluate
from lightsplit.models import MODELS
from lightsplit.results import tensors
from lightsplit.results.atomic import write_text

METRICS = (
    "mse",
    "mse_foreground",
    "ssim",
    "ssim_crop",
    "lpips",
    "lpips_crop",
    "correlation",
    "scaled_mse",
)
STACKED = 6  # attacks at a time: 60 problems, which still fit the processor's cache

Attacked = tuple[Cell, str]  # and the form
Row = dict[str, object]


def main() -> None:
    """Train, attack, score."""
    options = _parser().parse_args()
    scale = Scale(options.epochs, options.train_limit, options.iterations, options.seed)
    _claim(options.out, scale)
    rows: list[Row] = []
    for dataset in options.datasets:
        data = DATASETS.create(dataset, data_dir=data_folder(None))
        rows += _trivial(data, scale)
        for cut in options.cuts:
            wanted = list(cells(dataset, cut, options.ratios, options.wcc))
            rows += _attacked(wanted, scale, data=data, out=options.out)
            _write(options.out / "unsplit.csv", rows)
    print(f"{len(rows)} rows in {options.out / 'unsplit.csv'}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder of runs, images and the CSV")
    add("--datasets", nargs="+", default=["mnist", "fashion-mnist"])
    add("--cuts", nargs="+", default=["2", "4"])
    add("--ratios", nargs="+", type=float, default=[8, 16, 32])
    add("--wcc", nargs="+", type=float, default=[0.0, 0.01, 0.1])
    add("--epochs", type=int, default=20, help="of a victim; the paper has 20")
    add("--train-limit", type=int, help="training images; default: all")
    add("--iterations", type=int, default=1000, help="main iterations of the attack")
    add("--seed", type=int, default=0)
    return parser


def _claim(out: Path, scale: Scale) -> None:
    """Write the scale down, or refuse to mix it with another."""
    path = out / "scale.json"
    text = json.dumps(asdict(scale), indent=2) + "\n"
    if path.exists() and path.read_text() != text:
        raise SystemExit(f"{out} holds figures of another scale: {path.read_text()}")
    write_text(path, text)


def _attacked(
    wanted: list[Cell], scale: Scale, *, data: Dataset, out: Path
) -> Iterator[Row]:
    targets = first_of_each_class(data.test)
    victims = {}
    for cell in wanted:
        victims[cell] = trained(cell, scale, targets=targets, out=out)
        print(f"{cell.name}: accuracy {victims[cell].accuracy:.4f}", flush=True)
    planned = [(cell, form) for cell in wanted for form in UnSplit.forms]
    missing = [each for each in planned if not _images_file(out, *each).exists()]
    for start in range(0, len(missing), STACKED):
        _attack(missing[start : start + STACKED], victims, scale, out=out)
    raw: dict[str, float] = {}
    for cell, form in planned:
        images = tensors.load(_images_file(out, cell, form))["images"]
        scores = _scores(images, targets)
        error = float(str(scores["mse_foreground"]))
        ratio = error / raw.setdefault(form, error)  # the first cell is raw
        scores["mse_foreground_to_raw"] = round(ratio, 4)
        accuracy = {"accuracy": victims[cell].accuracy}
        realised = {"realised_ratio": victims[cell].codec.ratio}
        about = {**asdict(cell), **realised, **accuracy, "attack": f"unsplit {form}"}
        yield {**about, **scores, **asdict(scale)}


def _attack(
    chosen: Sequence[Attacked],
    victims: dict[Cell, Trained],
    scale: Scale,
    *,
    out: Path,
) -> None:
    began = time.monotonic()
    found = invert(
        [
            observed(victims[cell].codes, victims[cell].codec, form, seed=scale.seed)
            for cell, form in chosen
        ],
        partial(_head, chosen[0][0].cut),
        image_shape=(1, 28, 28),
        schedule=Schedule(main_iterations=scale.iterations),
    )
    for (cell, form), images in zip(chosen, found, strict=True):
        tensors.save(_images_file(out, cell, form), {"images": images})
        print(f"{cell.name} {form}: attacked", flush=True)
    print(f"{len(chosen)} attacks in {time.monotonic() - began:.0f} s", flush=True)


def _head(cut: str) -> torch.nn.Module:
    return MODELS.create("mnistnet", cut=cut).split().head


def _images_file(out: Path, cell: Cell, form: str) -> Path:
    return out / "images" / f"{cell.name}-{form}.safetensors"


def _trivial(data: Dataset, scale: Scale) -> Iterator[Row]:
    targets = first_of_each_class(data.test)
    images, _ = data.train.batch(torch.arange(len(data.train)))
    guesses = {
        "all-black": torch.zeros_like(targets),
        "mean-image": images.mean(0, keepdim=True).expand_as(targets),
    }
    for name, guess in guesses.items():
        about = {"dataset": data.name, "attack": name}
        yield {**about, **_scores(guess, targets), **asdict(scale)}


def _scores(images: Tensor, targets: Tensor) -> Row:
    weights = data_folder(None) / "weights"
    values = evaluate(images, targets, metrics=METRICS, weights=weights)
    return {name: round(each.mean().item(), 5) for name, each in values.items()}


def _write(path: Path, rows: Sequence[Row]) -> None:
    names = list(dict.fromkeys(itertools.chain.from_iterable(reversed(rows))))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


if __name__ == "__main__":
    main()
