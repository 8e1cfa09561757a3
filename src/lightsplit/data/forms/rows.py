"""Rows of CSV, TSV and Parquet files, with their place in the file."""

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from lightsplit.data.forms.base import found_file
from lightsplit.errors import DataError
from lightsplit.extras import require

Row = tuple[str, dict[str, str]]  # "file, line 7" and the row's values by column
PARQUET = (".parquet", ".pq")


def read_rows(file: Path, columns: Sequence[str]) -> list[Row]:
    """Return the rows of a table as texts; missing values are empty.

    Raises:
        DataError: the file cannot be read, lacks one of ``columns``, or has no rows.
    """
    found_file(file)
    is_parquet = file.suffix.lower() in PARQUET
    rows = list(_parquet(file, columns) if is_parquet else _delimited(file, columns))
    if not rows:
        raise DataError(f"{file}: expected at least one row, found none")
    return rows


def column_names(file: Path) -> list[str]:
    """Return the names of a table's columns, in order."""
    found_file(file)
    if file.suffix.lower() in PARQUET:
        library: Any = require("pyarrow.parquet", extra="tables", purpose="Parquet")
        return list(library.read_schema(file).names)
    with file.open(newline="", encoding="utf-8-sig") as text:
        return next(csv.reader(text, delimiter=_delimiter(file)), [])


def _delimiter(file: Path) -> str:
    return "\t" if file.suffix.lower() == ".tsv" else ","


def _delimited(file: Path, columns: Sequence[str]) -> Iterator[Row]:
    delimiter = _delimiter(file)
    is_quoted = delimiter == ","
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    try:
        with file.open(newline="", encoding="utf-8-sig") as text:
            reader = csv.DictReader(text, delimiter=delimiter, quoting=quoting)
            _check_columns(file, reader.fieldnames or [], columns)
            for values in reader:
                place = f"{file}, line {reader.line_num}"
                if None in values:
                    raise DataError(
                        f"{place}: the row has more values than the file has columns"
                    )
                yield (
                    place,
                    {name: _text(place, name, values[name]) for name in columns},
                )
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file}: this is not a CSV file in UTF-8: {error}") from error


def _text(place: str, name: str, value: str | None) -> str:
    if value is None:
        raise DataError(f"{place}: the row is too short, it has no {name!r}")
    return value.strip()


def _parquet(file: Path, columns: Sequence[str]) -> Iterator[Row]:
    library: Any = require("pyarrow.parquet", extra="tables", purpose="Parquet")
    arrow: Any = require("pyarrow", extra="tables")
    try:
        table = library.ParquetFile(file)
        _check_columns(file, table.schema_arrow.names, columns)
        number = 0
        for batch in table.iter_batches(columns=list(columns)):
            for values in batch.to_pylist():
                number += 1
                yield (
                    f"{file}, row {number}",
                    {name: _written(value) for name, value in values.items()},
                )
    except arrow.ArrowException as error:
        raise DataError(f"{file}: this is not a Parquet file: {error}") from error


def _written(value: Any) -> str:
    """Return a value as text; a missing one, which may be NaN, is empty."""
    is_missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if is_missing else str(value)


def _check_columns(file: Path, found: Sequence[str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if found.count(name) > 1:
            raise DataError(f"{file}: there is more than one column {name!r}")
        if name not in found:
            raise DataError(
                f"{file}: there is no column {name!r}; the columns are "
                f"{', '.join(found) or 'missing'}"
            )
