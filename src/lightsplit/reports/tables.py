"""Tables of a report: displayed texts, sort keys, and figures for CSV."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lightsplit.reports.groups import Group, Spread, beats_alone, raw_partner
from lightsplit.reports.monitored import ANY, common_heading
from lightsplit.results.promises import epsilon_text


@dataclass(frozen=True)
class Value:
    """One cell of a table.

    Attributes:
        text: the main text.
        sort: the sort key; the text if None.
        below: a second, smaller line.
        tone: ``good``, ``bad`` or nothing.
    """

    text: str
    sort: float | str | None = None
    below: str = ""
    tone: str = ""

    @property
    def key(self) -> float | str:
        """The sort key of the cell."""
        return self.text if self.sort is None else self.sort


@dataclass(frozen=True)
class Table:
    """A table with a name for links and files."""

    name: str
    title: str
    note: str
    columns: tuple[str, ...]
    rows: list[tuple[Value, ...]]
    lines: list[dict[str, Any]] = field(default_factory=list)

    def is_number(self, column: int) -> bool:
        """Return whether a column holds numbers, which are aligned to the right."""
        return all(not isinstance(row[column].key, str) for row in self.rows)

    def csv(self) -> str:
        """Return the figures as CSV, one line per row or per figure."""
        return to_csv(self.lines)


def to_csv(lines: list[dict[str, Any]]) -> str:
    """Return dictionaries with the same keys as CSV."""
    if not lines:
        return ""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue()


def percent(spread: Spread | None) -> Value:
    """Return an accuracy as a percentage, with its deviation if there is one."""
    if spread is None:
        return Value("–", -1.0)
    deviation = f" ± {100 * spread.deviation:.2f}" if spread.seeds > 1 else ""
    return Value(f"{100 * spread.mean:.2f}{deviation}", spread.mean)


def figure(group: Group, *, is_named: bool = False) -> Value:
    """Return the figure that a group's task is judged by, its best value below.

    Args:
        group: of runs.
        is_named: whether the figure's name stands before it.
    """
    monitor, last, best = group.monitor, group.monitored, group.best_monitored
    if last is None:
        return Value("–", -1e9)
    name = f"{monitor.name} " if is_named else ""
    deviation = f" ± {monitor.text(last.deviation)}" if last.seeds > 1 else ""
    below = f"best {monitor.text(best.mean)}" if best else ""
    return Value(f"{name}{monitor.text(last.mean)}{deviation}", last.mean, below=below)


def bytes_text(count: float) -> str:
    """Return a number of bytes with a readable unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def overview(groups: list[Group]) -> Table:
    """Return one row per group: its settings and its results."""
    lines = [_line(group, groups) for group in groups]
    has_audit = any(line["leakage_ssim"] is not None for line in lines)
    heading = common_heading([group.monitor for group in groups])
    columns = ["setting", "method", "seeds", heading]
    columns += ["of raw", "cut ratio", "step ratio", "total ratio", "bytes / sample"]
    columns += ["bits / sample", "distinct codes"]
    columns += ["worst SSIM"] if has_audit else []
    rows = [
        _row(group, line, has_audit=has_audit, is_named=heading == ANY)
        for group, line in zip(groups, lines, strict=True)
    ]
    note = (
        "One row per experiment, mean and deviation over seeds. The cut ratio is "
        "d / k; the step ratio counts all messages of a step, the total ratio "
        "everything that crosses, hand-offs included. “Of raw” is the "
        "accuracy over that of the raw codec in the same setting; tasks that are "
        "judged by another figure have none. Bits per sample: of one code, times the "
        "epochs; distinct codes: their share among test samples, which no attack that "
        "sees one code per sample can beat in naming samples."
    )
    return Table("runs", "What was run", note, (*columns, "time"), rows, lines)


def shown_settings(groups: Sequence[Group]) -> list[str]:
    """Return every setting of any group once, without the seed."""
    names = dict.fromkeys(name for group in groups for name in group.settings)
    return [name for name in names if name not in ("seed", "device")]


def duration_text(seconds: float) -> str:
    """Return a duration with a readable unit.

    Example:
        >>> duration_text(90), duration_text(600), duration_text(9000)
        ('90 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _line(group: Group, groups: list[Group]) -> dict[str, Any]:
    own, record = group.settings, group.runs[0].record
    accuracy, best = group.spread("test_accuracy"), group.spread("best_test_accuracy")
    monitored, top = group.monitored, group.best_monitored
    leakage = group.leakage()
    return {
        "method": group.method,
        **{name: own.get(name, "") for name in shown_settings(groups)},
        "seeds": len(group.runs),
        "test_accuracy": accuracy.mean if accuracy else None,
        "test_accuracy_deviation": accuracy.deviation if accuracy else None,
        "best_test_accuracy": best.mean if best else None,
        "monitor": group.monitor.name,
        "monitored": monitored.mean if monitored else None,
        "monitored_deviation": monitored.deviation if monitored else None,
        "best_monitored": top.mean if top else None,
        "of_raw": _of_raw(group, groups),
        "beats_alone": beats_alone(group, groups),
        **_certificate(record),
        "realised_ratio": record.get("ratio"),
        "step_ratio": record.get("step_ratio"),
        "total_ratio": record.get("total_ratio"),
        "step_bytes_per_sample": group.step_bytes,
        "total_bytes": record["bytes"].get("total"),
        "leakage_ssim": leakage.mean if leakage else None,
        "seconds": sum(run.record.get("seconds", 0) for run in group.runs),
    }


def _certificate(record: dict[str, Any]) -> dict[str, Any]:
    """Return what can be said of a run's codes without an attack."""
    names = (
        *("bits_per_sample", "reidentification_bound", "conditional_entropy"),
        *("epsilon", "delta", "label_epsilon"),
    )
    given = record.get("certificate") or {}
    return {name: given.get(name) for name in names}


def _of_raw(group: Group, groups: list[Group]) -> float | None:
    """Return the accuracy over that of raw; None for a task with another figure."""
    raw, own = raw_partner(group, groups), group.monitored
    base = raw.monitored if raw else None
    if not group.monitor.is_accuracy or own is None or not base or not base.mean:
        return None
    return own.mean / base.mean


def _row(
    group: Group, line: dict[str, Any], *, has_audit: bool, is_named: bool
) -> tuple[Value, ...]:
    own, of_raw, leakage = group.labels, line["of_raw"], line["leakage_ssim"]
    values = [
        Value(own["task"], below=f"{own['setting']}, {own['schedule']}"),
        Value(group.method),
        Value(str(line["seeds"]), line["seeds"]),
        figure(group, is_named=is_named),
        _number(of_raw, ".3f"),
        _number(line["realised_ratio"], ".4g", "x"),
        _number(line["step_ratio"], ".3g", "x"),
        _number(line["total_ratio"], ".3g", "x"),
        Value(
            bytes_text(line["step_bytes_per_sample"]),
            line["step_bytes_per_sample"],
            below=f"{bytes_text(line['total_bytes'] or 0)} in all",
        ),
    ]
    values += [
        _bits(line),
        _number(line["reidentification_bound"], ".3f"),
    ]
    values += [_number(leakage, ".3f")] if has_audit else []
    return (*values, Value(duration_text(line["seconds"]), line["seconds"]))


def _bits(line: dict[str, Any]) -> Value:
    """Return the bits about a sample, with the ε of its codes below."""
    bits = _number(line["bits_per_sample"], ",.0f")
    private = line["epsilon"] is not None
    return replace(bits, below=epsilon_text(line)) if private else bits


def _number(value: float | None, form: str, unit: str = "") -> Value:
    return Value("–", -1.0) if value is None else Value(f"{value:{form}}{unit}", value)
