"""The folder of a sweep.

    sweep.toml        the sweep that was requested
    CELL-HASH/        the run folder of each cell; a failed one has error.txt
    lock              held during a sweep, so that no second one runs here

The hash identifies a cell: a finished cell is never run again, even if the sweep file
has another name or another grid by now.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tomli_w

from lightsplit.audits import AuditOptions, is_attacked
from lightsplit.errors import RunError
from lightsplit.results import RunFolder, atomic
from lightsplit.sweeps.cells import Cell
from lightsplit.sweeps.sweep_file import Sweep


class SweepFolder:
    """The folder that holds the cells' run folders."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def opened(self, *, resume: bool) -> Iterator["SweepFolder"]:
        """Create or reopen the folder, and keep other sweeps out."""
        try:
            if not resume and self.path.exists() and any(self.path.iterdir()):
                raise RunError(
                    f"{self.path} is not empty; resume its sweep with --resume, "
                    "or name another folder with --out"
                )
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot make {self.path}: {error.strerror}") from error
        with (self.path / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise RunError(f"another sweep is running in {self.path}") from error
            yield self

    def write(self, sweep: Sweep) -> None:
        """Write down the requested sweep."""
        parts = {
            "title": sweep.title,
            "about": sweep.about,
            "paper": sweep.paper,
            "grid": sweep.common,
            "cells": [entry for entry in sweep.cells if entry],
            "exclude": list(sweep.exclude),
            "audit": sweep.audit,
        }
        kept = {name: part for name, part in parts.items() if part}
        atomic.write_text(self.path / "sweep.toml", tomli_w.dumps(kept))

    def folder_name(self, cell: Cell) -> str:
        """Return the name of the cell's folder: its existing one, or a new one."""
        there = sorted(self.path.glob(f"*-{cell.key}"))
        return there[0].name if there else cell.folder_name

    def is_finished(self, cell: Cell, audit: AuditOptions | None = None) -> bool:
        """Return whether the cell has a record with every requested attack."""
        folder = RunFolder(self.path / self.folder_name(cell))
        if not folder.is_finished:
            return False
        return audit is None or is_attacked(folder.read_record(), audit)
