"""What an advice leaves in the folder of its search.

report.html      the advice, the frontier, and the report on all cells
frontier.png     the picture alone
frontier.csv     a line for every setting
frontier.json    the same, with the limits and the advice
advice.toml      the experiment file of the advised setting
"""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import tomli_w

from lightsplit.advice.choosing import Advice, name
from lightsplit.advice.limits import Candidate
from lightsplit.reports import Problem, Report, Table, Value, make_report, write_page
from lightsplit.reports.figures import Marks, Picture, frontier, numbered
from lightsplit.reports.frontier import REIDENTIFICATION, SSIM, frontier_lines
from lightsplit.reports.tables import bytes_text, to_csv
from lightsplit.results import atomic, finite

PAGE, PICTURE, LINES, ALL, EXPERIMENT = (
    "report.html",
    "frontier.png",
    "frontier.csv",
    "frontier.json",
    "advice.toml",
)


def write_advice(
    advice: Advice, folder: Path, *, title: str = "", problems: tuple[Problem, ...] = ()
) -> Report:
    """Write the page, the picture, the figures and the experiment file."""
    report = advice_report(advice, title=title, problems=problems)
    write_page(report, folder / PAGE)
    picture = _picture(advice)
    if picture is not None:
        atomic.write_bytes(folder / PICTURE, picture.file("png"))
    lines = _lines(advice)
    atomic.write_text(folder / LINES, to_csv(lines))
    atomic.write_text(folder / ALL, json.dumps(summary(advice), indent=2) + "\n")
    if advice.chosen is None:
        (folder / EXPERIMENT).unlink(missing_ok=True)  # of an earlier search
    else:
        atomic.write_text(folder / EXPERIMENT, experiment_file(advice, advice.chosen))
    return report


def advice_report(
    advice: Advice, *, title: str = "", problems: tuple[Problem, ...] = ()
) -> Report:
    """Return the report on all cells with the advice in front of it."""
    runs = [run for one in advice.candidates for run in one.point.group.runs]
    made = make_report(runs, problems, title=title or "Which setting?")
    picture = _picture(advice)
    own: list[Table | Picture] = [table(advice)]
    own = [picture, *own] if picture is not None else own
    names = {part.name for part in own}
    others = [part for part in made.parts if part.name not in names]
    return replace(made, parts=[*own, *others], lead=tuple(advice.sentences))


def summary(advice: Advice) -> dict[str, Any]:
    """Return limits, advice and every setting, for other programs."""
    chosen = advice.chosen
    found: dict[str, Any] = finite(
        {
            "limits": asdict(advice.limits),
            "advice": None if chosen is None else name(chosen),
            "experiment": None if chosen is None else _tables(chosen),
            "sentences": advice.sentences,
            "settings": _lines(advice),
        }
    )
    return found


def experiment_file(advice: Advice, chosen: Candidate) -> str:
    """Return the text of the experiment file, with the advice as a comment."""
    comment = "".join(f"# {sentence}\n" for sentence in advice.sentences)
    return f"{comment}\n{tomli_w.dumps(_tables(chosen))}"


def table(advice: Advice) -> Table:
    """Return one row per setting: what it reaches, leaks and costs."""
    numbers = numbered([one.point for one in advice.candidates])
    columns = [
        "#",
        "cut",
        "setting",
        "limits",
        "test figure",
        "to raw",
        "to none",
        "SSIM",
    ]
    columns += ["over class mean", "named", "distinct codes", "bytes / sample"]
    rows = [
        _row(advice, one, numbers)
        for one in sorted(advice.candidates, key=lambda c: -c.point.merit)
    ]
    note = (
        "One row per setting, the best first. To raw, to none: the difference to raw "
        "activations and to the clients without the server. SSIM and named: the worst "
        "attack of the ladder. Distinct codes over samples: no attack that sees one "
        "code per sample can name a larger share. Bytes of all messages of a step and "
        "FLOPs of a client, both per sample."
    )
    return Table(
        "settings",
        "Every setting of the search",
        note,
        (*columns, "client MFLOPs", "what it misses"),
        rows,
        _lines(advice),
    )


def _row(advice: Advice, one: Candidate, numbers: dict[str, int]) -> tuple[Value, ...]:
    point, monitor = one.point, one.point.group.monitor
    number = numbers.get(point.method)
    value = "–" if point.value is None else monitor.text(point.value)
    scale = 100 if monitor.is_accuracy else 1
    missed = advice.limits.missed(one)
    verdict = "missed" if missed else "advised" if one is advice.chosen else "met"
    return (
        Value("–" if number is None else str(number), float(number or 0)),
        Value(str(point.group.settings.get("cut") or "–")),
        Value(point.method),
        Value(verdict, tone="bad" if missed else ""),
        Value(value, point.merit),
        _number(point.over_raw, "+.2f", scale),
        _number(point.over_alone, "+.2f", scale),
        _number(None if point.is_alone else point.leak(SSIM), ".3f"),
        _number(None if point.is_alone else point.ssim_gain, "+.3f"),
        _number(None if point.is_alone else point.leak(REIDENTIFICATION), ".1%"),
        _number(None if point.is_alone else point.bound, ".1%"),
        Value(bytes_text(point.group.step_bytes), point.group.step_bytes),
        Value(f"{one.client_flops / 1e6:.2f}", float(one.client_flops)),
        Value("; ".join(missed) or "–"),
    )


def _number(value: float | None, form: str, scale: float = 1) -> Value:
    if value is None:
        return Value("–", -1e9)
    return Value(f"{scale * value:{form}}", value)


def _picture(advice: Advice) -> Picture | None:
    limits = {}
    for one in advice.sent:
        setting = one.point.group.setting
        limits[setting, REIDENTIFICATION] = advice.limits.reidentification
        if one.point.class_mean is not None:
            most = one.point.class_mean + advice.limits.ssim_gain
            limits[setting, SSIM] = most
    chosen = advice.chosen
    marks = Marks(None if chosen is None else chosen.point.group, limits)
    return frontier([one.point for one in advice.candidates], marks)


def _lines(advice: Advice) -> list[dict[str, Any]]:
    found = frontier_lines([one.point for one in advice.candidates])
    return [
        {
            **line,
            "client_flops": one.client_flops,
            "limits_missed": "; ".join(advice.limits.missed(one)),
            "is_advised": one is advice.chosen,
        }
        for line, one in zip(found, advice.candidates, strict=True)
    ]


def _tables(chosen: Candidate) -> dict[str, Any]:
    return chosen.point.group.runs[0].tables
