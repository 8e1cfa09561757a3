"""The report: one HTML page that opens from disk without any other file.

    runs ──► groups ──► cautions · tables · pictures · reconstructions ──► report.html

Style, script, pictures and images are inside the page. The same tables and pictures can
also be written as separate files.
"""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightsplit.extras import require
from lightsplit.reports.audits import audit_tables
from lightsplit.reports.backdoors import backdoor_parts
from lightsplit.reports.cautions import Caution, find_cautions
from lightsplit.reports.comparisons import Comparison, find_comparisons
from lightsplit.reports.false_alarms import false_alarm_table
from lightsplit.reports.figures import (
    Picture,
    curves,
    histograms,
    tradeoff,
    traffic,
)
from lightsplit.reports.groups import Group, group_runs
from lightsplit.reports.methods import method_table
from lightsplit.reports.paper import paper_tables
from lightsplit.reports.paper_main import main_table
from lightsplit.reports.runs import Problem, Run
from lightsplit.reports.tables import (
    Table,
    duration_text,
    overview,
    to_csv,
)
from lightsplit.results import atomic


@dataclass(frozen=True)
class Report:
    """The content of a report before it becomes a page."""

    title: str
    groups: list[Group]
    cautions: list[Caution]
    parts: list[Table | Picture]  # in the order of the page
    comparisons: list[Comparison]
    lead: tuple[str, ...] = ()  # sentences at the top of the page

    @property
    def tables(self) -> list[Table]:
        """The tables among the parts."""
        return [part for part in self.parts if isinstance(part, Table)]

    @property
    def pictures(self) -> list[Picture]:
        """The pictures among the parts."""
        return [part for part in self.parts if isinstance(part, Picture)]


def make_report(
    runs: Sequence[Run], problems: Sequence[Problem] = (), *, title: str = ""
) -> Report:
    """Return the report on ``runs``."""
    groups = group_runs(runs)
    return Report(
        title=title or "LightSplit report",
        groups=groups,
        cautions=find_cautions(groups, problems),
        parts=_parts(groups) if groups else [],
        comparisons=find_comparisons(groups),
    )


def _parts(groups: list[Group]) -> list[Table | Picture]:
    """Return tables and pictures, related ones next to each other."""
    parts = [
        overview(groups),
        tradeoff(groups),
        method_table(groups),
        main_table(groups),
        *paper_tables(groups),
        *audit_tables(groups),
        *backdoor_parts(groups),
        false_alarm_table(groups),
        *(draw(groups) for draw in (curves, traffic, histograms)),
    ]
    return [part for part in parts if part is not None]


def write_page(report: Report, path: Path) -> None:
    """Write the page atomically."""
    jinja2 = require("jinja2", extra="reports")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lightsplit.reports", "template"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    template = environment.get_template("report.html")
    page = template.render(
        report=report,
        facts=_facts(report.groups),
        machines=_machines(report.groups),
        parts=[
            (part, part.svg() if isinstance(part, Picture) else "")
            for part in report.parts
        ],
        comparisons=[(each, _inline(each.png())) for each in report.comparisons],
        grids=_grids(report.groups),
    )
    atomic.write_text(path, page)


def write_files(report: Report, folder: Path) -> list[Path]:
    """Write tables as CSV, pictures as SVG, PNG and CSV, grids as PNG and CSV."""
    files: dict[str, bytes] = {}
    for table in report.tables:
        files[f"table-{table.name}.csv"] = table.csv().encode()
    for picture in report.pictures:
        files[f"{picture.name}.csv"] = to_csv(picture.lines).encode()
        for kind in ("svg", "png"):
            files[f"{picture.name}.{kind}"] = picture.file(kind)
    for grid in report.comparisons:
        files[f"{grid.name}.png"] = grid.png()
        files[f"{grid.name}.csv"] = to_csv(grid.lines).encode()
    for name, content in files.items():
        atomic.write_bytes(folder / name, content)
    return [folder / name for name in files]


def _facts(groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Return the figures at the top of the page."""
    runs = [run for group in groups for run in group.runs]
    datasets = sorted({run.labels["task"] for run in runs})
    seconds = sum(run.record.get("seconds", 0) for run in runs)
    return [
        ("runs", f"{len(runs):,}"),
        ("experiments", f"{len(groups):,}"),
        ("datasets", ", ".join(datasets) or "–"),
        ("steps", f"{sum(run.record['steps'] for run in runs):,}"),
        ("training time", duration_text(seconds)),
        ("audited runs", f"{sum(bool(run.audit) for run in runs):,}"),
    ]


def _machines(groups: Sequence[Group]) -> list[str]:
    """Return every distinct machine and set of versions among the runs."""
    return sorted({_machine(run.record) for group in groups for run in group.runs})


def _machine(record: dict[str, Any]) -> str:
    hardware, versions = record.get("hardware", {}), record.get("versions", {})
    where = (
        f"{hardware.get('machine', '?')}, {hardware.get('cpus', '?')} CPUs, "
        f"{hardware.get('threads', '?')} threads, {hardware.get('device', '?')}"
    )
    return ", ".join([where, *(f"{name} {text}" for name, text in versions.items())])


def _inline(png: bytes) -> str:
    """Return a picture as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _grids(groups: Sequence[Group]) -> list[dict[str, str]]:
    """Return the pictures of every audit, as data inside the page."""
    return [
        {
            "method": group.method,
            "setting": f"{group.labels['task']}: {group.labels['setting']}, "
            f"seed {run.settings['seed']}",
            "what": re.sub(r"^audit-?", "", image.stem).replace("-", " ") or "all",
            "data": _inline(image.read_bytes()),
        }
        for group in groups
        for run in group.runs
        for image in run.images
    ]
