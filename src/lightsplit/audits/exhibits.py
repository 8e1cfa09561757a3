"""What an audit leaves for eyes: pictures of images, sheets of rows and texts.

    image   strips and a grid of pictures, and the first 20 for grids across runs
    table   sheet-….csv, original and guess below each other; figures of each column
    text    sheet-….csv, original and guess beside each other

Sheets hold the owner's own samples in plain words, so only the owner may read them.
"""

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from lightsplit.audits import pictures
from lightsplit.audits.columns import column_figures
from lightsplit.audits.scoring import Judge
from lightsplit.results import atomic
from lightsplit.truths import TableTruth, TextTruth

Entry = dict[str, Any]
PICTURED = ("mse", "ssim", "psnr", "lpips")  # beside pictures, as in the paper
SHOWN = 20  # rows or texts of a sheet


class Exhibits(ABC):
    """Files in a folder that show what an audit found.

    Args:
        folder: that they are written to.
        judge: has the originals.
    """

    def __init__(self, folder: Path, judge: Judge) -> None:
        self.folder = folder
        self.judge = judge

    @abstractmethod
    def begin(self) -> None:
        """Show the originals."""

    @abstractmethod
    def add(self, title: str, name: str, guesses: Tensor) -> Entry:
        """Show the guesses of an attack; return what its entry says about them."""

    @abstractmethod
    def finish(self, titles: Sequence[str]) -> None:
        """Show all attacks together."""


class Pictures(Exhibits):
    """Pictures of reconstructed images."""

    def begin(self) -> None:
        """Write a strip of the originals."""
        pictures.write_strip(self.folder, pictures.ORIGINALS, self.judge.originals)

    def add(self, title: str, name: str, guesses: Tensor) -> Entry:
        """Write a strip, keep the first images for grids, and return their scores."""
        pictures.write_strip(self.folder, title, guesses)
        path = pictures.write_shown(self.folder, name, self.judge.originals, guesses)
        count = min(pictures.SHOWN, len(guesses))
        metrics = self.judge.score_first(count, guesses, PICTURED)
        return {"shown": {"file": path.name, "images": count, "metrics": metrics}}

    def finish(self, titles: Sequence[str]) -> None:
        """Write the grid of all strips."""
        pictures.write_grid(self.folder, titles)


class Sheets(Exhibits):
    """A sheet for each attack, which has the originals too."""

    def begin(self) -> None:
        """Write nothing yet."""

    def finish(self, titles: Sequence[str]) -> None:
        """Write nothing more."""


class RowSheets(Sheets):
    """Rows of a table with the attacker's guesses, and how far off each column is."""

    def __init__(self, folder: Path, judge: Judge, truth: TableTruth) -> None:
        super().__init__(folder, judge)
        self._truth = truth

    def add(self, title: str, name: str, guesses: Tensor) -> Entry:
        """Write the first rows in their own units; return the figures of columns."""
        del title
        head = ("row", "which", *(column.name for column in self._truth.columns))
        pairs = zip(self.judge.originals[:SHOWN], guesses[:SHOWN], strict=True)
        lines = [
            (str(number + 1), which, *self._texts(row))
            for number, pair in enumerate(pairs)
            for which, row in zip(("original", "guess"), pair, strict=True)
        ]
        file = write_sheet(self.folder, name, head, lines)
        columns = column_figures(self._truth, guesses, self.judge.originals)
        return {"sheet": {"file": file.name}, "columns": columns}

    def _texts(self, row: Tensor) -> list[str]:
        return [column.text(row[place]) for column, place in self._truth.places()]


class TextSheets(Sheets):
    """Texts with the attacker's guesses."""

    def __init__(self, folder: Path, judge: Judge, truth: TextTruth) -> None:
        super().__init__(folder, judge)
        self._truth = truth

    def add(self, title: str, name: str, guesses: Tensor) -> Entry:
        """Write the first texts."""
        del title
        pairs = zip(self.judge.originals[:SHOWN], guesses[:SHOWN], strict=True)
        lines = [
            (str(number + 1), *(self._truth.text(text) for text in pair))
            for number, pair in enumerate(pairs)
        ]
        head = ("text", "original", "guess")
        return {"sheet": {"file": write_sheet(self.folder, name, head, lines).name}}


def make_exhibits(folder: Path, judge: Judge) -> Exhibits:
    """Return the exhibits that fit the kind of truth."""
    match judge.truth:
        case TableTruth() as truth:
            return RowSheets(folder, judge, truth)
        case TextTruth() as truth:
            return TextSheets(folder, judge, truth)
    return Pictures(folder, judge)


def write_sheet(
    folder: Path, name: str, head: Sequence[str], lines: Iterable[Sequence[str]]
) -> Path:
    """Write sheet-NAME.csv for the owner's eyes."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(head)
    table.writerows(lines)
    path = folder / f"sheet-{name}.csv"
    atomic.write_bytes(path, text.getvalue().encode(), is_secret=True)
    return path
