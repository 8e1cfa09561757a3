"""A new task file from a template, fitted to an owner's folder if there is one.

template ──replace(CLASSES, SIZE, …)──► my_task.py
"""

import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from lightsplit.data.forms.base import found_folder
from lightsplit.data.forms.pictures import picture_files, picture_size
from lightsplit.data.forms.rows import column_names, read_rows
from lightsplit.errors import ConfigError, DataError

Settings = dict[str, Any]  # the template's names in capitals, with their values
KINDS = ("images", "segmentation", "table", "text")
_MANY = 20  # more different texts than this are not categories


def template(kind: str, settings: Settings | None = None) -> str:
    """Return the text of a template, with ``settings`` in place of its own."""
    folder = resources.files("lightsplit.tasks.templates")
    text = (folder / f"{kind}.py").read_text(encoding="utf-8")
    for name, value in (settings or {}).items():
        text = _replaced(text, name, value)
    return text


def _replaced(text: str, name: str, value: Any) -> str:
    """Return the text with another value for ``name``; its comment stays."""
    pattern = rf"^({name}(?:: [^=]+)?) = .*?(  #.*)?$"
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise ConfigError(f"the template has no setting {name}")
    line = f"{found[1]} = {value!r}{found[2] or ''}"
    return text[: found.start()] + line + text[found.end() :]


def look_at(kind: str, folder: Path) -> Settings:
    """Return the template's settings as they fit the files in ``folder``."""
    look: dict[str, Callable[[Path], Settings]] = {
        "images": _images,
        "segmentation": _masks,
        "table": _table,
        "text": _texts,
    }
    return look[kind](found_folder(folder))


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


def _table(folder: Path) -> Settings:
    """Take the last column for the label and look at the others' values."""
    file = next(
        (
            folder / name
            for name in ("train.csv", "data.csv", "train.parquet")
            if (folder / name).is_file()
        ),
        None,
    )
    if file is None:
        raise DataError(f"{folder}: expected train.csv, data.csv or train.parquet")
    names = column_names(file)
    rows = [row for _, row in read_rows(file, names)]
    *inputs, label = names
    numbers: dict[str, tuple[float, float]] = {}
    categories: dict[str, tuple[str, ...]] = {}
    for name in inputs:
        values = [row[name] for row in rows if row[name]]
        if (scale := _scale(values)) is not None:
            numbers[name] = scale
        elif len(set(values)) <= _MANY:
            categories[name] = tuple(sorted(set(values)))
    return {
        "LABEL": label,
        "CLASSES": tuple(sorted({row[label] for row in rows})),
        "NUMBERS": numbers,
        "CATEGORIES": categories,
        "OPTIONAL": tuple(
            name
            for name in (*numbers, *categories)
            if any(not row[name] for row in rows)
        ),
    }


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
    return round(mean, 4), round(variance**0.5, 4) or 1.0
