"""Tables of a report: what is shown, what is sorted by, and what goes into CSV."""

import csv
import io
from dataclasses import dataclass, field, replace
from typing import Any

from lightsplit.reports.groups import Group, Spread, raw_partner

SHOWN_SETTINGS = (
    *("dataset", "model", "cut", "topology", "heads", "clients", "alpha"),
    *("codec", "ratio", "projection", "scale", "hidden", "wcc"),
    *("epochs", "max_steps", "train_limit", "test_limit"),
    *("trigger", "malicious", "poison_ratio"),
)


@dataclass(frozen=True)
class Value:
    """One cell of a table.

    Attributes:
        text: what is read first.
        sort: what the column is sorted by; the text if None.
        below: a second, smaller line.
        tone: ``good``, ``bad`` or nothing.
    """

    text: str
    sort: float | str | None = None
    below: str = ""
    tone: str = ""

    @property
    def key(self) -> float | str:
        """What the column is sorted by."""
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
        """Say whether a column holds numbers, which stand to the right."""
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


def bytes_text(count: float) -> str:
    """Return a number of bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def overview(groups: list[Group]) -> Table:
    """Return one row per group: what was run and what came of it."""
    lines = [_line(group, groups) for group in groups]
    has_audit = any(line["leakage_ssim"] is not None for line in lines)
    columns = ["setting", "method", "seeds", "accuracy %"]
    columns += ["of raw", "cut ratio", "step ratio", "bytes / sample"]
    columns += ["worst SSIM"] if has_audit else []
    rows = [
        _row(group, line, has_audit=has_audit)
        for group, line in zip(groups, lines, strict=True)
    ]
    note = (
        "One row per experiment, mean and deviation over seeds. The cut ratio is "
        "d / k; the step ratio counts all messages of a step. “Of raw” is the "
        "accuracy over that of the raw codec in the same setting."
    )
    return Table("runs", "What was run", note, (*columns, "time"), rows, lines)


def setting_text(settings: dict[str, Any]) -> str:
    """Return where a group's runs took place, in a few words."""
    spread_of = f"Dirichlet {settings['alpha']:g}" if settings["alpha"] else "IID"
    words = [settings["cut"], settings["heads"], f"n={settings['clients']}", spread_of]
    words += ["vanilla"] if settings["topology"] == "vanilla" else []
    if settings.get("trigger"):
        share, ratio = settings["malicious"], settings["poison_ratio"]
        words.append(f"{settings['trigger']} μ={share:g} p={ratio:g}")
    return " · ".join(words)


def schedule_text(settings: dict[str, Any]) -> str:
    """Return how long a run was, in a few words."""
    words = [f"{settings['epochs']} epochs"]
    limits = {"train_limit": "images", "max_steps": "steps"}
    words += [
        f"{settings[k]:,} {what}" for k, what in limits.items() if settings.get(k)
    ]
    return ", ".join(words)


def duration_text(seconds: float) -> str:
    """Return a time for people.

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
    raw = raw_partner(group, groups)
    base = raw.spread("test_accuracy") if raw else None
    leakage = group.leakage()
    return {
        **{name: own.get(name, "") for name in SHOWN_SETTINGS},
        "seeds": len(group.runs),
        "test_accuracy": accuracy.mean if accuracy else None,
        "test_accuracy_deviation": accuracy.deviation if accuracy else None,
        "best_test_accuracy": best.mean if best else None,
        "of_raw": accuracy.mean / base.mean if accuracy and base else None,
        "realised_ratio": record.get("ratio"),
        "step_ratio": record.get("step_ratio"),
        "step_bytes_per_sample": group.step_bytes,
        "total_bytes": record["bytes"].get("total"),
        "leakage_ssim": leakage.mean if leakage else None,
        "seconds": sum(run.record.get("seconds", 0) for run in group.runs),
    }


def _row(group: Group, line: dict[str, Any], *, has_audit: bool) -> tuple[Value, ...]:
    own, of_raw, leakage = group.settings, line["of_raw"], line["leakage_ssim"]
    hidden = f" m={own['hidden']}" if own.get("hidden") else ""
    values = [
        Value(own["dataset"], below=f"{setting_text(own)}, {schedule_text(own)}"),
        Value(group.method + hidden),
        Value(str(line["seeds"]), line["seeds"]),
        replace(
            percent(group.spread("test_accuracy")),
            below=f"best {percent(group.spread('best_test_accuracy')).text}",
        ),
        _number(of_raw, ".3f"),
        _number(line["realised_ratio"], ".4g", "x"),
        _number(line["step_ratio"], ".3g", "x"),
        Value(
            bytes_text(line["step_bytes_per_sample"]),
            line["step_bytes_per_sample"],
            below=f"{bytes_text(line['total_bytes'] or 0)} in all",
        ),
    ]
    values += [_number(leakage, ".3f")] if has_audit else []
    return (*values, Value(duration_text(line["seconds"]), line["seconds"]))


def _number(value: float | None, form: str, unit: str = "") -> Value:
    return Value("–", -1.0) if value is None else Value(f"{value:{form}}{unit}", value)
