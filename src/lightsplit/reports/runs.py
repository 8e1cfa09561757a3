"""The runs under given folders, and what is wrong with those that cannot be read."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightsplit.errors import RunError
from lightsplit.results import RECORD_VERSION, RunFolder


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        path: of its folder.
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

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting of the run."""
        settings: dict[str, Any] = self.record["experiment"]
        return settings

    @property
    def audit(self) -> list[dict[str, Any]]:
        """What each attack of an audit came to; empty without one."""
        entries: list[dict[str, Any]] = self.record.get("audit", [])
        return entries


@dataclass(frozen=True)
class Problem:
    """A run that is not in the report, and why."""

    path: Path
    reason: str


def find_runs(places: Iterable[Path]) -> tuple[list[Run], list[Problem]]:
    """Return the finished runs in and under ``places``, and those that are not.

    A place without any run is refused: it is more likely a slip than an empty sweep.
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
    """Return the finished run in ``path``, or say why it cannot be used."""
    folder = RunFolder.open(path)
    record = folder.read_record()
    version = record.get("record_version") if isinstance(record, dict) else None
    if version != RECORD_VERSION:
        raise RunError(
            f"{folder.record_file} has version {version!r}, this LightSplit reads "
            f"version {RECORD_VERSION}; use the LightSplit that wrote it"
        )
    missing = [name for name in ("experiment", "bytes", "steps") if name not in record]
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
    """Return the whole lines; a crash may have left half of the last one."""
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
