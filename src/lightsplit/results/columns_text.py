"""The figures of a table's columns in words, for tables of readers."""

from collections.abc import Iterable
from typing import Any


def columns_text(columns: Iterable[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Return name, R², what an attack reached and what a blind guess reaches.

    Example:
        >>> age = {"column": "age", "r2": 0.75, "error": 5.0, "error_of_mean": 10.0}
        >>> columns_text([age])
        [('age', '0.750', 'off by 5', 'off by 10')]
    """
    return [
        (
            one["column"],
            "–" if one["r2"] is None else f"{one['r2']:.3f}",
            *_beside_guessing(one),
        )
        for one in columns
    ]


def _beside_guessing(one: dict[str, Any]) -> tuple[str, str]:
    if "error" in one:
        return f"off by {one['error']:.3g}", f"off by {one['error_of_mean']:.3g}"
    if "accuracy" in one:
        blind = one["accuracy_of_most_frequent"]
        return f"{one['accuracy']:.1%} right", f"{blind:.1%} right"
    return "–", "–"
