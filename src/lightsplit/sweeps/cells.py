"""The cells of a sweep: every experiment of its grid, each once.

    common x [[cells]] ──product──► settings ──validated──► Experiment ──► Cell

The hash of all its settings identifies a cell. The name of its folder begins with the
settings that people look for and ends with the hash, so equal settings share a folder,
whatever file they come from.
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
from lightsplit.experiments import Experiment, from_settings
from lightsplit.experiments.labels import slug
from lightsplit.results.settings import short_name
from lightsplit.sweeps.sweep_file import Settings, Sweep

MOST_CELLS = 10_000


@dataclass(frozen=True)
class Cell:
    """One experiment of a sweep."""

    experiment: Experiment

    @cached_property
    def key(self) -> str:
        """The hash of all settings."""
        settings = json.dumps(self.experiment.tables(), sort_keys=True)
        return hashlib.sha256(settings.encode()).hexdigest()[:10]

    @cached_property
    def label(self) -> str:
        """The settings by which people tell cells apart."""
        return slug(self.experiment)

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
            f"{sweep.name} has {count:,} cells, more than the limit of {MOST_CELLS:,}; "
            "split it into several files"
        )
    cells: dict[str, Cell] = {}
    for settings in itertools.chain.from_iterable(map(_combinations, parts)):
        cell = _make_cell(settings)
        if not any(_matches(cell.experiment, rule) for rule in sweep.exclude):
            cells.setdefault(cell.key, cell)
    if not cells:
        raise ConfigError(f"{sweep.name}: [[exclude]] leaves no cell; loosen its rules")
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
        return Cell(from_settings(settings))
    except ConfigError as error:
        shown = ", ".join(f"{key} = {value!r}" for key, value in settings.items())
        raise ConfigError(f"the cell with {shown}: {error}") from error


def _matches(experiment: Experiment, rule: dict[str, Any]) -> bool:
    settings = experiment.settings()
    return all(
        settings.get(short_name(key)) in (value if isinstance(value, list) else [value])
        for key, value in rule.items()
    )
