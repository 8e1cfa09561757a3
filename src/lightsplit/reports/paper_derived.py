"""Figures of the paper that follow from its tables.

    utility-delta   accuracy minus that of raw, in points         (utility, top row)
    head-ratio      accuracy with private heads over shared ones  (utility, bottom row)
    sdar-bars       SDAR's MSE and SSIM, change against raw in %  (bars of SDAR)

The paper draws them; its pictures have no numbers, so they are computed from the tables
that they are drawn from.
"""

from collections.abc import Iterator, Sequence
from typing import Any

Figure = dict[str, Any]


def derived_figures(published: Sequence[Figure]) -> list[Figure]:
    """Return the lines of the paper's pictures, from the lines of its tables."""
    return [*_deltas(published), *_head_ratios(published), *_sdar_bars(published)]


def _deltas(published: Sequence[Figure]) -> Iterator[Figure]:
    keys = ("dataset", "alpha", "cut", "heads")
    utility = [line for line in _utility(published) if line["heads"] == "shared"]
    raw = {_key(line, keys): line["value"] for line in utility if _is_raw(line)}
    for line in utility:
        if not _is_raw(line):
            value = round(line["value"] - raw[_key(line, keys)], 2)
            yield _changed(line, "utility-delta", "delta_raw", value)


def _head_ratios(published: Sequence[Figure]) -> Iterator[Figure]:
    keys = ("dataset", "alpha", "cut", "codec", "ratio")
    utility = _utility(published)
    shared = {
        _key(line, keys): line["value"] for line in utility if line["heads"] == "shared"
    }
    for line in utility:
        if line["heads"] == "private":
            value = round(line["value"] / shared[_key(line, keys)], 3)
            yield _changed(line, "head-ratio", "private_over_shared", value)


def _sdar_bars(published: Sequence[Figure]) -> Iterator[Figure]:
    keys = ("cut", "topology", "metric")
    sdar = [line for line in published if line["table"] == "sdar"]
    raw = {_key(line, keys): line["value"] for line in sdar if _is_raw(line)}
    for line in sdar:
        metric = line["metric"]
        if metric in ("mse", "ssim") and not _is_raw(line):
            value = round(100 * (line["value"] / raw[_key(line, keys)] - 1), 1)
            yield _changed(line, f"sdar-bars-{metric}", f"{metric}_change", value)


def _utility(published: Sequence[Figure]) -> list[Figure]:
    """Return the utility grid at cut l2, which the paper draws."""
    return [
        line for line in published if line["table"] == "utility" and line["cut"] == "l2"
    ]


def _key(line: Figure, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(line[name] for name in names)


def _is_raw(line: Figure) -> bool:
    return bool(line["codec"] == "raw")


def _changed(line: Figure, table: str, metric: str, value: float) -> Figure:
    return {**line, "table": table, "metric": metric, "value": value}
