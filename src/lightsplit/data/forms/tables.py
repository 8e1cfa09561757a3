"""Tables: numbers and categories in CSV or Parquet files.

    age 63, sex f, smoker –  ──►  [(63 - mean) / std, 1, 0, 0, 0, 1]
                                    age               f  m  no yes missing

A number becomes one value, a category one value for each of its names. A column that
may be missing gets one more value, which is 1 where it is missing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from lightsplit.data.forms.base import Form, class_index
from lightsplit.data.forms.rows import Row, read_rows
from lightsplit.errors import ConfigError, DataError
from lightsplit.truths import Column, TableTruth

Scale = tuple[float, float]  # mean and standard deviation of a column


@dataclass(frozen=True)
class TableForm(Form):
    """Columns of a table, and the one to predict.

    Attributes:
        label: the column to predict.
        classes: its classes; empty if it is a number.
        numbers: columns of numbers, each with mean and standard deviation; (0, 1)
            leaves a column as it is.
        categories: columns of categories, each with its names.
        optional: columns whose values may be missing.
        missing: what stands for a missing value beside an empty one, such as NA.
    """

    label: str
    classes: tuple[str, ...] = ()
    numbers: Mapping[str, Scale] = field(default_factory=dict)
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.numbers and not self.categories:
            raise ConfigError("a table needs columns: give numbers or categories")
        for name, (_, std) in self.numbers.items():
            if not std > 0:
                raise ConfigError(f"the deviation of {name!r} must be above 0")
        for name in self.optional:
            if name not in self.numbers and name not in self.categories:
                raise ConfigError(f"{name!r} is optional, but it is not a column")

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that a file must have."""
        return (*self.numbers, *self.categories, self.label)

    @property
    def features(self) -> tuple[str, ...]:
        """The name of each value of an input: its column, perhaps with a category."""
        names = list(self.numbers)
        for column, categories in self.categories.items():
            names += [f"{column}={name}" for name in categories]
        return (*names, *(f"{column} is missing" for column in self.optional))

    @property
    def width(self) -> int:
        """How many values an input has."""
        return len(self.features)

    def truth(self) -> TableTruth:
        """Return rows with these columns."""
        numbers = (Column(name, *scale) for name, scale in self.numbers.items())
        categories = (
            Column(name, categories=names) for name, names in self.categories.items()
        )
        missing = (Column(f"{name} is missing") for name in self.optional)
        return TableTruth((*numbers, *categories, *missing))

    def file(self, path: Path) -> TensorDataset:
        """Return the rows of a CSV, TSV or Parquet file."""
        rows = self._rows(path, self.columns)
        inputs = [self._inputs(place, row) for place, row in rows]
        labels = [self._label(place, row) for place, row in rows]
        dtype = torch.int64 if self.classes else torch.float32
        return TensorDataset(torch.tensor(inputs), torch.tensor(labels, dtype=dtype))

    def unlabelled(self, path: Path) -> Tensor:
        """Return the rows of a file that needs no label, one row of numbers each."""
        rows = self._rows(path, (*self.numbers, *self.categories))
        return torch.tensor([self._inputs(place, row) for place, row in rows])

    def scaled_like(self, path: Path) -> "TableForm":
        """Return this form with means and deviations of the numbers in a file."""
        rows = self._rows(path, self.columns)
        scales = {name: _scale([row[name] for _, row in rows]) for name in self.numbers}
        return replace(self, numbers=scales)

    def _rows(self, path: Path, columns: Sequence[str]) -> list[Row]:
        """Return the rows of a file; whatever stands for a missing value is empty."""
        return [
            (place, {name: "" if v in self.missing else v for name, v in row.items()})
            for place, row in read_rows(path, columns)
        ]

    def _inputs(self, place: str, row: dict[str, str]) -> list[float]:
        values = [
            0.0
            if self._is_missing(place, name, row)
            else (_number(place, name, row[name]) - mean) / std
            for name, (mean, std) in self.numbers.items()
        ]
        for name, categories in self.categories.items():
            values += self._one_hot(place, name, row, categories)
        return [*values, *(float(not row[name]) for name in self.optional)]

    def _one_hot(
        self, place: str, name: str, row: dict[str, str], categories: tuple[str, ...]
    ) -> list[float]:
        if self._is_missing(place, name, row):
            return [0.0] * len(categories)
        if row[name] not in categories:
            raise DataError(
                f"{place}: {name} is {row[name]!r}, which is not one of the task's "
                f"categories, {', '.join(categories)}"
            )
        return [float(row[name] == one) for one in categories]

    def _is_missing(self, place: str, name: str, row: dict[str, str]) -> bool:
        if row[name] == "" and name not in self.optional:
            raise DataError(
                f"{place}: {name} is missing; name it in the task's optional columns "
                "if it may be"
            )
        return row[name] == ""

    def _label(self, place: str, row: dict[str, str]) -> float | int:
        if self.classes:
            return class_index(row[self.label], self.classes, place)
        return _number(place, self.label, row[self.label])


def _number(place: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{place}: expected a number for {name}, got {text!r}")
    return value


def _scale(texts: list[str]) -> Scale:
    values = torch.tensor([float(text) for text in texts if text], dtype=torch.float64)
    return float(values.mean()), float(values.std()) or 1.0
