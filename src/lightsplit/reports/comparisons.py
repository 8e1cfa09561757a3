"""Reconstructions of the same images by the same attack, from different runs.

    originals           image image image …
    raw                 image image image …   20 images: mse … ssim … psnr … lpips …
    lightsplit-f 8x     image image image …   all …

Runs share a grid only if their targets are bit-identical, as the record's fingerprint
shows. An audit keeps the images for this in the run's images/.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from lightsplit.errors import RunError
from lightsplit.reports.groups import Group
from lightsplit.reports.runs import Run
from lightsplit.results import as_file_name, attack_label, grids, tensors

METRICS = ("mse", "ssim", "psnr", "lpips")
Entry = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Shown:
    """One attack's reconstructions in one run."""

    group: Group
    run: Run
    entry: Entry
    originals: Tensor
    reconstructions: Tensor

    @property
    def form(self) -> str:
        """The form of the attack."""
        return str(self.entry.get("form", ""))

    @property
    def key(self) -> tuple[Any, ...]:
        """The facts that all rows of a grid share."""
        own = [self.entry.get(k) for k in ("budget", "client", "targets")]
        pixels = self.originals.numpy().tobytes()
        label = attack_label(self.entry)
        return (self.group.setting, self.run.settings["seed"], label, *own, pixels)


@dataclass(frozen=True, eq=False)
class Comparison:
    """One grid: the originals, then a row per run and form."""

    number: int
    rows: list[Shown]

    @property
    def name(self) -> str:
        """The name of its files."""
        own = self.rows[0].group.settings
        words = [own["dataset"], own.get("model"), own.get("cut"), own["topology"]]
        words = [str(word) for word in words if word]
        attack = as_file_name(self.attack)
        return "-".join(["grid", str(self.number), *words, attack])

    @property
    def attack(self) -> str:
        """The attack's name, with its options if any were given."""
        return attack_label(self.rows[0].entry)

    @property
    def setting(self) -> str:
        """The task, the setting and the targets of all rows."""
        run, entry = self.rows[0].run, self.rows[0].entry
        return (
            f"{run.labels['task']}: {run.labels['setting']}, "
            f"seed {run.settings['seed']}, client {entry['client']}, "
            f"budget {entry['budget']}"
        )

    @property
    def labels(self) -> list[str]:
        """The label of each row: codec, ratio and λ, and the form if there are two."""
        has_forms = len({row.form for row in self.rows}) > 1
        return [
            f"{row.group.method} {row.form}" if has_forms else row.group.method
            for row in self.rows
        ]

    @property
    def description(self) -> str:
        """A text version of the grid for readers who cannot see it."""
        rows = zip(self.labels, self.rows, strict=True)
        return "; ".join(f"{label}: {', '.join(_figures(row))}" for label, row in rows)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The figures of every row for CSV."""
        return [_line(row) for row in self.rows]

    def png(self) -> bytes:
        """Return the grid as a PNG file."""
        originals = grids.make_strip(self.rows[0].originals)
        rows = [
            grids.Row(label, grids.make_strip(row.reconstructions), _figures(row))
            for label, row in zip(self.labels, self.rows, strict=True)
        ]
        return grids.as_png(grids.make_grid([grids.Row("originals", originals), *rows]))


def find_comparisons(groups: Sequence[Group]) -> list[Comparison]:
    """Return a grid for every attack that two or more runs share."""
    together: dict[tuple[Any, ...], list[Shown]] = {}
    for shown in _all_shown(groups):
        together.setdefault(shown.key, []).append(shown)
    several = [
        rows for rows in together.values() if len({r.run.path for r in rows}) > 1
    ]
    return [Comparison(number, rows) for number, rows in enumerate(several, 1)]


def _all_shown(groups: Sequence[Group]) -> Iterator[Shown]:
    for group in groups:
        for run in group.runs:
            for entry in _distinct(run.audit):
                images = _images(run, entry)
                if images is not None:
                    yield Shown(group, run, entry, *images)


def _images(run: Run, entry: Entry) -> tuple[Tensor, Tensor] | None:
    """Return originals and reconstructions; None if the files are missing."""
    file = Path(entry["shown"]["file"]).name  # never outside the run's folder
    try:
        kept = tensors.load(run.path / "images" / file)
        return kept["originals"], kept["reconstructions"]
    except (RunError, KeyError):
        return None


def _distinct(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries with pictures; of two forms with equal ones, only the first."""
    found: dict[tuple[Any, ...], Entry] = {}
    for entry in entries:
        if entry.get("kind") != "trivial" and "shown" in entry:
            names = ("budget", "client", "fingerprint")
            own = (entry.get(name) for name in names)
            found.setdefault((attack_label(entry), *own), entry)
    return list(found.values())


def _figures(row: Shown) -> tuple[str, ...]:
    """Return the texts behind a row: figures of its images, and of all images."""
    shown = row.entry["shown"]
    return (
        _text(f"{shown['images']} images", shown["metrics"]),
        _text(f"all {row.entry['images']:,}", row.entry["metrics"]),
    )


def _text(what: str, metrics: dict[str, Any]) -> str:
    known = [name for name in METRICS if _mean(metrics, name) is not None]
    return f"{what}: " + ", ".join(f"{n} {_mean(metrics, n):.3g}" for n in known)


def _mean(metrics: dict[str, Any], name: str) -> float | None:
    mean: float | None = metrics.get(name, {}).get("mean")
    return mean


def _line(row: Shown) -> dict[str, Any]:
    entry, own = row.entry, row.run.settings
    names = ("dataset", "model", "cut", "topology", "codec", "ratio", "wcc", "seed")
    sets = {"shown": entry["shown"]["metrics"], "all": entry["metrics"]}
    figures = {
        f"{metric}_{which}": _mean(metrics, metric)
        for which, metrics in sets.items()
        for metric in METRICS
    }
    return {
        **{name: own.get(name, "") for name in names},
        "attack": attack_label(entry),
        **{name: entry.get(name) for name in ("form", "budget", "client")},
        "images_shown": entry["shown"]["images"],
        "images_all": entry["images"],
        **figures,
    }
