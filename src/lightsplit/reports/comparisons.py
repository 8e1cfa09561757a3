"""Reconstructions of the same images by the same attack, from run to run.

    originals           image image image …
    raw                 image image image …   20 images: mse … ssim … psnr … lpips …
    lightsplit-f 8x     image image image …   all …

Runs stand in one grid only if their targets are the same to the last bit: the record
has a fingerprint of them. What an audit keeps for this is in the run's images/.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from lightsplit.errors import RunError
from lightsplit.reports.groups import Group
from lightsplit.reports.runs import Run
from lightsplit.reports.tables import setting_text
from lightsplit.results import grids, tensors

METRICS = ("mse", "ssim", "psnr", "lpips")
Entry = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Shown:
    """What one attack made of one run's images."""

    group: Group
    run: Run
    entry: Entry
    originals: Tensor
    reconstructions: Tensor

    @property
    def form(self) -> str:
        """Which form of the attack it was."""
        return str(self.entry.get("form", ""))

    @property
    def key(self) -> tuple[Any, ...]:
        """What is the same in all rows of a grid."""
        own = [self.entry.get(k) for k in ("attack", "budget", "client", "targets")]
        pixels = self.originals.numpy().tobytes()
        return (*self.group.setting, self.run.settings["seed"], *own, pixels)


@dataclass(frozen=True, eq=False)
class Comparison:
    """One grid: the originals, then a row per run and form."""

    number: int
    rows: list[Shown]

    @property
    def name(self) -> str:
        """What its files are called."""
        own = self.rows[0].group.settings
        words = [own["dataset"], own["model"], own["cut"], own["topology"]]
        return "-".join(["grid", str(self.number), *words, self.attack])

    @property
    def attack(self) -> str:
        """The attack's name."""
        return str(self.rows[0].entry["attack"])

    @property
    def setting(self) -> str:
        """Where all of this took place."""
        own, entry = self.rows[0].run.settings, self.rows[0].entry
        return (
            f"{own['dataset']}, {own['model']}: {setting_text(own)}, seed "
            f"{own['seed']}, client {entry['client']}, budget {entry['budget']}"
        )

    @property
    def labels(self) -> list[str]:
        """What each row is called: codec, ratio and λ; the form where there are two."""
        has_forms = len({row.form for row in self.rows}) > 1
        return [
            f"{row.group.method} {row.form}" if has_forms else row.group.method
            for row in self.rows
        ]

    @property
    def description(self) -> str:
        """The grid for those who cannot see it."""
        rows = zip(self.labels, self.rows, strict=True)
        return "; ".join(f"{label}: {', '.join(_figures(row))}" for label, row in rows)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The figures of every row, for CSV."""
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
    """Return a grid for every attack that two runs or more have in common."""
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
    """Return originals and reconstructions; a run may have been moved without them."""
    file = Path(entry["shown"]["file"]).name  # nothing outside the run's folder
    try:
        kept = tensors.load(run.path / "images" / file)
        return kept["originals"], kept["reconstructions"]
    except (RunError, KeyError):
        return None


def _distinct(entries: Sequence[Entry]) -> list[Entry]:
    """Return those with pictures; of two forms that gave the same ones, the first."""
    found: dict[tuple[Any, ...], Entry] = {}
    for entry in entries:
        if entry.get("kind") != "trivial" and "shown" in entry:
            names = ("attack", "budget", "client", "fingerprint")
            found.setdefault(tuple(entry.get(name) for name in names), entry)
    return list(found.values())


def _figures(row: Shown) -> tuple[str, ...]:
    """Return the lines behind a row: of the images in it, and of all."""
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
        **{name: own[name] for name in names},
        **{name: entry.get(name) for name in ("attack", "form", "budget", "client")},
        "images_shown": entry["shown"]["images"],
        "images_all": entry["images"],
        **figures,
    }
