"""The runs in given folders, and the reasons why others cannot be used."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lightsplit.errors import RunError
from lightsplit.results import RECORD_VERSION, RunFolder
from lightsplit.results.settings import flatten

NEEDED = ("experiment", "labels", "bytes", "steps")
ABSENT: dict[str, Any] = {
    "ratio": 1,
    "wcc": 0,
    "hidden": 0,
    "malicious": 0,
    "poison_ratio": 0.3,
    "train_limit": 0,
    "test_limit": 0,
    "max_steps": 0,
}


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        path: its folder.
        record: the final figures (docs/record.md).
        metrics: one line per evaluation.
        images: pictures that an audit left.
        verdicts: one line per verdict of its detectors.
    """

    path: Path
    record: dict[str, Any]
    metrics: list[dict[str, Any]]
    images: list[Path]
    verdicts: list[dict[str, Any]] = field(default_factory=list)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Every setting of the run under its short name, comparable with the paper's.

        If the run lacks a setting that the paper's tables have a column for, it has
        the paper's value for "none".
        """
        flat = flatten(self.tables)
        alpha = flat["alpha"]
        return {**ABSENT, **flat, "alpha": 0 if alpha == "iid" else alpha}

    @property
    def tables(self) -> dict[str, Any]:
        """Every setting of the run in tables, as in its experiment file."""
        tables: dict[str, Any] = self.record["experiment"]
        return tables

    @property
    def labels(self) -> dict[str, str]:
        """The run in a few words, as its parts describe themselves."""
        labels: dict[str, str] = self.record["labels"]
        return labels

    @property
    def is_networked(self) -> bool:
        """Return whether this is a server's folder, or an owner's."""
        return "clients" in self.record or "client" in self.record

    @property
    def audit(self) -> list[dict[str, Any]]:
        """The entry of each attack of an audit; empty without an audit."""
        entries: list[dict[str, Any]] = self.record.get("audit", [])
        return entries


@dataclass(frozen=True)
class Problem:
    """A run that is left out of the report, and the reason."""

    path: Path
    reason: str


def find_runs(places: Iterable[Path]) -> tuple[list[Run], list[Problem]]:
    """Return the finished runs in and under ``places``, and the unusable ones.

    A place without any run is refused: it is more likely a typing error than an empty
    sweep.
    """
    runs: dict[Path, Run] = {}
    problems: dict[Path, Problem] = {}
    for place in places:
        folders = _run_folders(place)
        if not folders:
            raise RunError(
                f"{place} is not a run and holds none: expected a folder with "
                "experiment.toml, from `lightsplit train` or `lightsplit sweep`"
            )
        for folder in folders:
            try:
                runs[folder.resolve()] = read_run(folder)
            except RunError as error:
                problems[folder.resolve()] = Problem(folder, _reason(folder, error))
    return list(runs.values()), list(problems.values())


def read_run(path: Path) -> Run:
    """Return the finished run in ``path``, or raise RunError with the reason."""
    folder = RunFolder.open(path)
    record = folder.read_record()
    version = record.get("record_version") if isinstance(record, dict) else None
    if version != RECORD_VERSION:
        raise RunError(
            f"{folder.record_file} has version {version!r}, but this LightSplit reads "
            f"version {RECORD_VERSION}; use the LightSplit that wrote it"
        )
    missing = [name for name in NEEDED if name not in record]
    if missing:
        raise RunError(f"{folder.record_file} is damaged: no {', '.join(missing)}")
    images = sorted((path / "images").glob("*.png"))
    return Run(
        path,
        record,
        _read_lines(folder.metrics_file),
        images,
        _read_lines(folder.verdicts_file),
    )


def _run_folders(place: Path) -> list[Path]:
    if not place.is_dir():
        raise RunError(f"{place} is not a folder")
    return sorted(file.parent for file in place.rglob("experiment.toml"))


def _read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the complete lines; a crash may have cut off the last one."""
    if not file.is_file():
        return []
    lines = []
    for line in file.read_text(errors="replace").splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return lines


def _reason(folder: Path, error: RunError) -> str:
    failure = folder / "error.txt"
    if failure.is_file():
        first = failure.read_text(errors="replace").splitlines()[:1]
        return f"failed: {''.join(first)}"
    return str(error)
