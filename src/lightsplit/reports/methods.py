"""Every method of a setting in one table: what it reaches, leaks, sends and costs."""

from collections.abc import Sequence

from lightsplit.reports.frontier import (
    REIDENTIFICATION,
    SSIM,
    Point,
    frontier_lines,
    points,
)
from lightsplit.reports.groups import Group
from lightsplit.reports.tables import Table, Value, bytes_text, figure

_COLUMNS = (
    "setting",
    "method",
    "figure",
    "over raw",
    "worst SSIM",
    "named",
    "code / sample",
    "step / sample",
    "client MFLOP",
    "client parameters",
    "not beaten",
)
_NOTE = (
    "One row per setting that was audited; a click on a heading sorts. Over raw: in "
    "the unit of the figure. Worst SSIM and named: the worst figure of all attacks. "
    "Bytes are those of one sample, of its code and of all messages of a step. Client "
    "MFLOP: operations of a training step per sample, forward and backward, networks "
    "of objectives included where they change what is sent. Not beaten: no other "
    "setting that sends codes is at least as good and leaks less."
)


def method_table(groups: Sequence[Group]) -> Table | None:
    """Return the table; None if nothing was audited."""
    found = points(groups)
    if not any(point.leak(SSIM) is not None and not point.is_alone for point in found):
        return None
    lines = frontier_lines(found)
    rows = [
        _row(point, is_best=bool(line["is_on_frontier"]))
        for point, line in zip(found, lines, strict=True)
    ]
    return Table("methods", "Methods side by side", _NOTE, _COLUMNS, rows, lines)


def _row(point: Point, *, is_best: bool) -> tuple[Value, ...]:
    group = point.group
    sent = group.per_sample("code")
    return (
        Value(f"{group.labels['task']}: {group.labels['setting']}"),
        Value(point.method, below="ours" if point.is_ours else ""),
        figure(group),
        _number(point.over_raw, "{:+.3f}"),
        _number(point.leak(SSIM), "{:.3f}"),
        _number(point.leak(REIDENTIFICATION), "{:.3f}"),
        Value(bytes_text(sent), sent),
        Value(bytes_text(group.step_bytes), group.step_bytes),
        _number(_millions(point.client_flops), "{:.2f}"),
        _number(point.client_parameters, "{:,}"),
        Value("yes" if is_best else "–", float(is_best), tone="good" * is_best),
    )


def _millions(count: int | None) -> float | None:
    return None if count is None else count / 1e6


def _number(value: float | None, form: str) -> Value:
    return Value("–", -1e9) if value is None else Value(form.format(value), value)
