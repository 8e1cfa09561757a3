"""The cells of a sweep: every experiment that its grid stands for, each once.

    common x [[cells]] ──product──► settings ──validated──► Experiment ──► Cell

A cell is known by the hash of all its settings. Its folder's name begins with what
people look for and ends with the hash, so equal settings meet in one folder, whatever
file they come from.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lightsplit.errors import ConfigError
from lightsplit.experiments import Experiment, make_experiment
from lightsplit.sweeps.sweep_file import Settings, Sweep

MOST_CELLS = 10_000


@dataclass(frozen=True)
class Cell:
    """One experiment of a sweep."""

    experiment: Experiment

    @cached_property
    def key(self) -> str:
        """The hash of all settings."""
        settings = json.dumps(self.experiment.model_dump(), sort_keys=True)
        return hashlib.sha256(settings.encode()).hexdigest()[:10]

    @cached_property
    def label(self) -> str:
        """The settings that people tell cells apart by."""
        run = self.experiment
        words = [run.dataset, run.cut, run.codec, f"{run.ratio:g}x"]
        words += ["vanilla"] if run.topology == "vanilla" else []
        words += [f"n{run.clients}", run.heads]
        words += [f"alpha{run.alpha:g}"] if run.alpha else ["iid"]
        words += [f"wcc{run.wcc:g}"] if run.wcc else []
        words += [f"m{run.hidden}"] if run.hidden else []
        if run.trigger:
            words += [run.trigger, f"mu{run.malicious:g}", f"p{run.poison_ratio:g}"]
        return "-".join([*words, f"s{run.seed}"])

    @property
    def folder_name(self) -> str:
        """The name of the cell's run folder."""
        return f"{self.label}-{self.key}"


def expand(sweep: Sweep) -> list[Cell]:
    """Return every cell of ``sweep`` once, in the order of the file."""
    parts = [{**sweep.common, **entry} for entry in sweep.cells]
    count = sum(map(_count, parts))
    if count > MOST_CELLS:
        raise ConfigError(
            f"{sweep.name} has {count:,} cells, more than {MOST_CELLS:,}; "
            "cut it into several files"
        )
    cells: dict[str, Cell] = {}
    for settings in itertools.chain.from_iterable(map(_combinations, parts)):
        cell = _make_cell(settings)
        if not any(_matches(cell.experiment, rule) for rule in sweep.exclude):
            cells.setdefault(cell.key, cell)
    if not cells:
        raise ConfigError(f"{sweep.name}: [[exclude]] leaves no cell")
    return list(cells.values())


def _count(settings: Settings) -> int:
    return math.prod(len(v) for v in settings.values() if isinstance(v, list))


def _combinations(settings: Settings) -> Iterator[Settings]:
    choices = [
        value if isinstance(value, list) else [value] for value in settings.values()
    ]
    for values in itertools.product(*choices):
        yield dict(zip(settings, values, strict=True))


def _make_cell(settings: Settings) -> Cell:
    try:
        return Cell(make_experiment(settings))
    except ConfigError as error:
        shown = ", ".join(f"{key} = {value!r}" for key, value in settings.items())
        raise ConfigError(f"the cell with {shown}: {error}") from error


def _matches(experiment: Experiment, rule: dict[str, Any]) -> bool:
    return all(
        getattr(experiment, key) in (value if isinstance(value, list) else [value])
        for key, value in rule.items()
    )
