"""Backdoors in a report: the trigger, its success, and each detector's scores."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lightsplit.reports.backdoor_f1 import f1_table
from lightsplit.reports.detections import (
    Sight,
    detectors,
    malicious_clients,
    over_seeds,
    sights,
)
from lightsplit.reports.families import Family, families
from lightsplit.reports.figures import Picture, detection_pictures
from lightsplit.reports.groups import Group, Spread, spread
from lightsplit.reports.runs import Run
from lightsplit.reports.tables import (
    Table,
    Value,
    percent,
    shown_settings,
)

RATES = {
    "success_rate": "backdoor %",
    "unmarked_rate": "without the mark %",
    "base_rate": "unpoisoned twin %",
}
SIGHT_FIGURES: dict[str, Callable[[Sight], Any]] = {  # by column of the CSV file
    "detector": lambda sight: sight.detector,
    "threshold": lambda sight: sight.threshold,
    "false_alarm_rate": lambda sight: sight.false_alarm_rate,
    "smallest_score": lambda sight: sight.smallest,
    "mean_score": lambda sight: sight.mean,
    "rank": lambda sight: sight.rank,
    "f1": lambda sight: sight.f1,
    "honest_flagged": lambda sight: sight.honest_flagged,
    "smallest_score_per_verdict": lambda sight: " ".join(
        f"{score:.2f}" for score in sight.history
    ),
}
_NOTE = (
    "Backdoor: marked test images that are classified as the target; without the "
    "mark: the same images and model; unpoisoned twin: marked images and a model "
    "trained without poison (--twin). A detector's column has the score of the least "
    "noticed malicious client at the last verdict, and the number of honest clients "
    "flagged there; means over seeds."
)


def backdoor_parts(groups: Sequence[Group]) -> list[Table | Picture]:
    """Return all tables and pictures about backdoors; none if no run has any."""
    found = families(groups)
    pictures = detection_pictures(found)
    parts: list[Table | Picture] = [f1_table(found), *pictures, _outcomes(found)]
    return [part for part in parts if part.lines]


def _outcomes(found: Sequence[Family]) -> Table:
    groups = [group for family in found for group in family.groups]
    judges = detectors(groups)
    rates = [rate for rate in RATES if any(_rate(group, rate) for group in groups)]
    rows = [
        (
            *_heading(family, group),
            percent(group.spread("test_accuracy")),
            *(percent(_rate(group, rate)) for rate in rates),
            *(_score(group, detector) for detector in judges),
        )
        for family in found
        for members in family.rows()
        for group in members
    ]
    title = "Backdoors: what was planted and who noticed"
    columns = ("setting", "method", "seeds", "accuracy %")
    names = (*columns, *(RATES[rate] for rate in rates), *judges)
    return Table("backdoors", title, _NOTE, names, rows, list(_lines(groups)))


def _heading(family: Family, group: Group) -> tuple[Value, Value, Value]:
    seeds = len(group.runs)
    return (
        Value(" ".join(family.heading(group)), below=family.title),
        Value(group.method),
        Value(str(seeds), seeds),
    )


def _rate(group: Group, name: str) -> Spread | None:
    return spread((run.record.get("backdoor") or {}).get(name) for run in group.runs)


def _score(group: Group, detector: str) -> Value:
    alarms = over_seeds(group, detector, lambda sight: sight.honest_flagged)
    if alarms is None:
        return Value("–", -1.0)
    honest = group.settings["clients"] - len(malicious_clients(group.runs[0]))
    below = f"{alarms.mean:.3g} of {honest} honest flagged"
    score = over_seeds(group, detector, lambda sight: sight.smallest)
    if score is None:
        return Value("–", -1.0, below=below)
    deviation = f" ± {score.deviation:.1f}" if score.seeds > 1 else ""
    return Value(f"{score.mean:.1f}{deviation}", score.mean, below=below)


def _lines(groups: Sequence[Group]) -> Iterator[dict[str, Any]]:
    """Yield a line per run and detector, and one for a run without a detector."""
    names = shown_settings(groups)
    for group in groups:
        for run in group.runs:
            own, seen = _run_figures(run, names), sights(run)
            if not seen:
                yield {**own, **dict.fromkeys(SIGHT_FIGURES)}
            for sight in seen:
                yield {**own, **{k: get(sight) for k, get in SIGHT_FIGURES.items()}}


def _run_figures(run: Run, names: Sequence[str]) -> dict[str, Any]:
    own, backdoor = run.settings, run.record.get("backdoor") or {}
    return {
        **{name: own.get(name, "") for name in names},
        "seed": own["seed"],
        "realised_ratio": run.record.get("ratio"),
        "malicious_clients": " ".join(map(str, malicious_clients(run))),
        "test_accuracy": run.record.get("test_accuracy"),
        **{rate: backdoor.get(rate) for rate in RATES},
    }
