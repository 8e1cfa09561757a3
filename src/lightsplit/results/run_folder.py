"""The folder of a run.

experiment.toml   every setting; ``lightsplit train experiment.toml`` repeats the run
record.json       the final figures (docs/record.md)
metrics.jsonl     one line per evaluation
verdicts.jsonl    one line per verdict of the detectors, if there are any
model.safetensors the trained model under its own parameter names
checkpoint/       the state from which a run resumes
images/           pictures that an audit leaves
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from lightsplit.errors import RunError
from lightsplit.results.atomic import named_errors, remove_drafts, write_text
from lightsplit.results.finite import finite

RECORD_VERSION = 2


class RunFolder:
    """The files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.experiment_file = path / "experiment.toml"
        self.record_file = path / "record.json"
        self.metrics_file = path / "metrics.jsonl"
        self.verdicts_file = path / "verdicts.jsonl"
        self.checkpoint = path / "checkpoint"
        self.images = path / "images"

    @classmethod
    def create(cls, path: Path) -> "RunFolder":
        """Create the folder of a new run; refuse a folder that is not empty."""
        try:
            if path.exists() and (not path.is_dir() or any(path.iterdir())):
                raise RunError(
                    f"{path} is not an empty folder; name another one with --out, "
                    f"or resume its run with --resume {path}"
                )
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot make {path}: {error.strerror}") from error
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """Open the folder of an existing run."""
        folder = cls(path)
        if not folder.experiment_file.is_file():
            raise RunError(f"{path} is not a run: it has no experiment.toml")
        return folder

    def remove_drafts(self) -> None:
        """Delete what a killed process left half written; nobody else may write."""
        for folder in (self.path, self.checkpoint):
            remove_drafts(folder)

    def write_experiment(self, experiment: str) -> None:
        """Write every setting."""
        write_text(self.experiment_file, experiment)

    def write_record(self, record: dict[str, Any]) -> None:
        """Write the final figures."""
        write_text(self.record_file, json.dumps(finite(record), indent=2) + "\n")

    def read_record(self) -> dict[str, Any]:
        """Return the final figures of a finished run."""
        try:
            record: dict[str, Any] = json.loads(self.record_file.read_text())
        except FileNotFoundError as error:
            raise RunError(f"{self.path} has no record.json: not finished") from error
        except json.JSONDecodeError as error:
            raise RunError(f"{self.record_file} is damaged: {error}") from error
        return record

    @property
    def is_finished(self) -> bool:
        """Return whether there is a record; a damaged one does not count."""
        try:
            return bool(self.read_record())
        except (RunError, OSError, UnicodeDecodeError):
            return False

    def write_metrics(self, lines: Iterable[dict[str, Any]]) -> None:
        """Replace the content of metrics.jsonl with ``lines``."""
        write_text(self.metrics_file, "".join(map(_json_line, lines)))

    def read_metrics(self) -> list[dict[str, Any]]:
        """Return the lines of metrics.jsonl, without any that a crash has damaged."""
        found = []
        for line in self.metrics_file.read_text(errors="replace").splitlines():
            with suppress(ValueError):
                found.append(json.loads(line))
        return found

    def append_metrics(self, line: dict[str, Any]) -> None:
        """Add one line to metrics.jsonl."""
        with named_errors(self.metrics_file), self.metrics_file.open("a") as file:
            file.write(_json_line(line))

    def write_verdicts(self, lines: Iterable[dict[str, Any]]) -> None:
        """Write verdicts.jsonl if there are any verdicts."""
        if text := "".join(map(_json_line, lines)):
            write_text(self.verdicts_file, text)


def _json_line(line: dict[str, Any]) -> str:
    return json.dumps(finite(line)) + "\n"
