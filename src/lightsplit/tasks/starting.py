"""A new task file from a template, fitted to an owner's folder if there is one.

template ──replace(CLASSES, SIZE, …)──► my_task.py
"""

import pprint
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from lightsplit.data.forms.base import found_folder
from lightsplit.data.forms.pictures import picture_files, picture_size
from lightsplit.data.forms.rows import column_names, read_rows
from lightsplit.errors import ConfigError, DataError

Settings = dict[str, Any]  # the template's names in capitals, with their values
KINDS = ("images", "segmentation", "table", "text")
_MANY = 20  # more different texts than this are not categories, numbers not classes
_MISSING = ("NA", "N/A", "NaN", "nan", "NULL", "null", "None", "?")  # as tables have it


class Look(NamedTuple):
    """What was found in an owner's folder.

    Attributes:
        template: the name of the template that fits.
        settings: of the template.
        left_out: columns that are not used, with the reason.
    """

    template: str
    settings: Settings
    left_out: dict[str, str]


def template(name: str, settings: Settings | None = None) -> str:
    """Return the text of a template, with ``settings`` in place of its own."""
    folder = resources.files("lightsplit.tasks.templates")
    text = (folder / f"{name}.py").read_text(encoding="utf-8")
    for setting, value in (settings or {}).items():
        text = _replaced(text, setting, value)
    return text


def _replaced(text: str, name: str, value: Any) -> str:
    """Return the text with another value for ``name``; its comment stays."""
    pattern = rf"^({name}(?:: [^=]+)?) = .*?(  #.*)?$"
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise ConfigError(f"the template has no setting {name}")
    written = pprint.pformat(value, width=80, sort_dicts=False)
    line = f"{found[1]} = {written}{found[2] or ''}"
    return text[: found.start()] + line + text[found.end() :]


def look_at(kind: str, folder: Path) -> Look:
    """Return the template that fits the files in ``folder``, with its settings."""
    if kind == "table":
        return _table(found_folder(folder))
    look: dict[str, Callable[[Path], Settings]] = {
        "images": _images,
        "segmentation": _masks,
        "text": _texts,
    }
    return Look(kind, look[kind](found_folder(folder)), {})


def _images(folder: Path) -> Settings:
    root = folder / "train" if (folder / "train").is_dir() else folder
    classes = tuple(
        sorted(
            one.name
            for one in root.iterdir()
            if one.is_dir() and not one.name.startswith(".")
        )
    )
    pictures = [file for name in classes for file in picture_files(root / name)]
    if len(classes) < 2 or not pictures:
        raise DataError(
            f"{root}: expected pictures in two or more subfolders, one per class"
        )
    return {"CLASSES": classes, "SIZE": picture_size(pictures[0])}


def _masks(folder: Path) -> Settings:
    pictures = picture_files(found_folder(folder / "image"))
    if not pictures:
        raise DataError(f"{folder / 'image'}: expected pictures, found none")
    height, width = picture_size(pictures[0])
    return {"SIZE": (height // 4 * 4, width // 4 * 4)}


def _table(folder: Path) -> Look:
    """Take the last column for the label and look at the others' values."""
    file = next(
        (
            folder / name
            for name in ("train.csv", "data.csv", "train.parquet", "data.parquet")
            if (folder / name).is_file()
        ),
        None,
    )
    if file is None:
        raise DataError(f"{folder}: expected train.csv or data.csv, or .parquet")
    *inputs, label = column_names(file)
    rows = [row for _, row in read_rows(file, (*inputs, label))]
    columns = {name: _Column([row[name] for row in rows]) for name in inputs}
    used = {name: one for name, one in columns.items() if one.reason is None}
    settings = {
        "LABEL": label,
        "NUMBERS": {name: one.scale for name, one in used.items() if one.scale},
        "CATEGORIES": {n: one.names for n, one in used.items() if not one.scale},
        "OPTIONAL": tuple(name for name, one in used.items() if one.gaps),
        "MISSING": tuple(
            text for text in _MISSING if any(text in one.gaps for one in used.values())
        ),
    }
    left_out = {n: one.reason for n, one in columns.items() if one.reason is not None}
    found = _Column([row[label] for row in rows])
    if found.scale and len(found.names) > _MANY:
        return Look("numbers", {**settings, "SCALE": found.scale}, left_out)
    return Look("table", {**settings, "CLASSES": found.names}, left_out)


class _Column:
    """What the values of a column are.

    Attributes:
        names: the different ones, sorted.
        gaps: what stands for missing values, if some are missing.
        scale: mean and deviation; None if they are not numbers.
    """

    def __init__(self, values: list[str]) -> None:
        missing = ("", *_MISSING)
        self.gaps = {one for one in values if one in missing}
        there = [one for one in values if one not in missing]
        self.names = tuple(sorted(set(there)))
        self.scale = _scale(there)

    @property
    def reason(self) -> str | None:
        """Why the column is not used; None if it is."""
        if not self.names:
            return "no values"
        is_used = self.scale is not None or len(self.names) <= _MANY
        return None if is_used else f"{len(self.names)} different texts"


def _texts(folder: Path) -> Settings:
    file = next(
        (
            folder / name
            for name in ("train.csv", "train.tsv")
            if (folder / name).is_file()
        ),
        None,
    )
    if file is None:
        raise DataError(f"{folder}: expected train.csv or train.tsv")
    labels = {row["label"] for _, row in read_rows(file, ("text", "label"))}
    return {"CLASSES": tuple(sorted(labels))}


def _scale(values: list[str]) -> tuple[float, float] | None:
    """Return mean and deviation of a column of numbers; None for other columns."""
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return None
    if not numbers:
        return None
    mean = sum(numbers) / len(numbers)
    variance = sum((one - mean) ** 2 for one in numbers) / len(numbers)
    return _short(mean), _short(variance**0.5) or 1.0


def _short(number: float) -> float:
    """Return a number with six digits."""
    return float(f"{number:.6g}")
