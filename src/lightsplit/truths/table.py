"""Rows of a table: numbers, standardised by the task, and categories as one-hot values.

column   age      income   sex=f  sex=m
value    -0.31    1.20     0      1
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.truths.base import Truth


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: of the column.
        mean: what the task subtracts from its numbers.
        std: what it divides the difference by.
        categories: their names, if the column is one of categories.
    """

    name: str
    mean: float = 0.0
    std: float = 1.0
    categories: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """How many values of a row belong to the column."""
        return len(self.categories) or 1

    def text(self, values: Tensor) -> str:
        """Return the column's values of one row, in its own unit, as a reader has them.

        The most likely category is named if the values come near to one.
        """
        if not self.categories:
            return f"{float(values[0]) * self.std + self.mean:.4g}"
        return self.categories[int(values.argmax())] if bool(values.any()) else "–"


@dataclass(frozen=True)
class TableTruth(Truth):
    """Rows with the same columns."""

    kind: ClassVar[str] = "table"
    things: ClassVar[str] = "rows"
    telling: ClassVar[tuple[str, ...]] = ("r2",)

    columns: tuple[Column, ...]

    @classmethod
    def numbered(cls, width: int) -> "TableTruth":
        """Return a table whose columns have no names and are taken as they are."""
        return cls(tuple(Column(f"column {number + 1}") for number in range(width)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values in a row."""
        return (sum(column.width for column in self.columns),)

    def samples(self, inputs: Any) -> Tensor:
        """Return the rows (N, F) as the task standardises them."""
        if not isinstance(inputs, Tensor) or tuple(inputs.shape[1:]) != self.shape:
            got = tuple(inputs.shape) if isinstance(inputs, Tensor) else type(inputs)
            raise ConfigError(f"expected rows of {self.shape[0]} values, got {got}")
        return inputs

    def inputs(self, samples: Tensor) -> Tensor:
        """Return the rows themselves."""
        return samples

    def places(self) -> Iterable[tuple[Column, slice]]:
        """Yield each column with its place in a row."""
        start = 0
        for column in self.columns:
            yield column, slice(start, start + column.width)
            start += column.width
