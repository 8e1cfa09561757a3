"""What a reader must know before believing a figure."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lightsplit.reports.groups import Group
from lightsplit.reports.runs import Problem, Run

LIMITS = ("train_limit", "test_limit", "max_steps")
_COLLAPSED = 1.2  # times chance, as the paper marks its cells


class Caution(NamedTuple):
    """A warning: what is wrong in a few words, then where."""

    title: str
    text: str
    places: tuple[str, ...] = ()


def find_cautions(
    groups: Sequence[Group], problems: Sequence[Problem]
) -> list[Caution]:
    """Return every warning that the runs call for, the gravest first."""
    runs = [run for group in groups for run in group.runs]
    found = [
        *_collapsed(runs),
        *_suspect_attacks(runs),
        *_missing(problems),
        *_repeated(groups),
        *_shortened(runs),
        *_single_seeds(groups),
    ]
    return list(found)


def _collapsed(runs: Sequence[Run]) -> Iterator[Caution]:
    places = [
        f"{run.path.name}: {_percent(run)} at chance {chance:.1%}"
        for run in runs
        if (chance := _chance(run)) is not None and _is_at(run, chance)
    ]
    if places:
        yield Caution(
            "Collapsed to chance",
            f"{len(places)} of {len(runs)} runs ended no better than guessing. What an "
            "attack gets out of such a model says nothing of the codec.",
            tuple(places),
        )


def _suspect_attacks(runs: Sequence[Run]) -> Iterator[Caution]:
    weak = [
        f"{run.path.name}: {entry['attack']} {entry.get('form', '')}".strip()
        for run in runs
        for entry in run.audit
        if entry.get("beats_trivial") is False
    ]
    if weak:
        yield Caution(
            "Attacks that failed their sanity check",
            f"{len(weak)} attacks did no better than a trivial guess such as the mean "
            "image. Either the codec hides well or the attack is broken: the figure "
            "alone does not tell, the stronger attacks of the same run do.",
            tuple(weak),
        )
    same = list(_identical(runs))
    if same:
        yield Caution(
            "Bit-identical attack figures",
            "Runs with different settings or seeds gave exactly the same figures. An "
            "attack that works does not do that.",
            tuple(same),
        )


def _identical(runs: Sequence[Run]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for run in runs:
        for entry in run.audit:
            if entry.get("kind") in ("trivial", "labels") or not entry["metrics"]:
                continue
            figures = json.dumps([entry["attack"], entry["metrics"]], sort_keys=True)
            first = seen.setdefault(figures, run.path.name)
            if first != run.path.name:
                yield f"{entry['attack']}: {first} and {run.path.name}"


def _missing(problems: Sequence[Problem]) -> Iterator[Caution]:
    if problems:
        yield Caution(
            "Not in this report",
            f"{len(problems)} runs are unfinished, failed or cannot be read.",
            tuple(f"{problem.path.name}: {problem.reason}" for problem in problems),
        )


def _repeated(groups: Sequence[Group]) -> Iterator[Caution]:
    places = [run.path.name for group in groups for run in group.repeats]
    if places:
        yield Caution(
            "Repeated runs",
            f"{len(places)} runs have the settings and the seed of another one here. "
            "They are left out: a run that is repeated is no second seed.",
            tuple(places),
        )


def _shortened(runs: Sequence[Run]) -> Iterator[Caution]:
    short = [run for run in runs if any(run.settings.get(name) for name in LIMITS)]
    if short:
        ways = {
            f"{name} = {run.settings[name]:,}"
            for run in short
            for name in LIMITS
            if run.settings.get(name)
        }
        yield Caution(
            "Shortened runs",
            f"{len(short)} of {len(runs)} runs did not see all data or stopped early: "
            f"{', '.join(sorted(ways))}. They rank nothing that is close.",
        )


def _single_seeds(groups: Sequence[Group]) -> Iterator[Caution]:
    single = [group for group in groups if len(group.runs) == 1]
    if single:
        which = "Every" if len(single) == len(groups) else f"{len(single)} of"
        rest = (
            "experiment was" if which == "Every" else f"{len(groups)} experiments were"
        )
        yield Caution(
            "Single seed",
            f"{which} {rest} run under one seed only. Differences of a point "
            "or two may be luck.",
        )


def _chance(run: Run) -> float | None:
    """Return the accuracy of always naming the most frequent class."""
    histogram = run.record.get("label_histogram")
    if not histogram:
        return None
    counts = [sum(column) for column in zip(*histogram, strict=True)]
    return float(max(counts) / max(sum(counts), 1))


def _is_at(run: Run, chance: float) -> bool:
    accuracy = run.record.get("test_accuracy")
    return accuracy is None or accuracy <= _COLLAPSED * chance


def _percent(run: Run) -> str:
    accuracy = run.record.get("test_accuracy")
    return "no finite accuracy" if accuracy is None else f"{accuracy:.1%}"
