"""Warnings that a reader must see before believing a figure."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lightsplit.reports.groups import Group, beats_alone
from lightsplit.reports.runs import Problem, Run
from lightsplit.results import NO_IMAGES, attack_label, hand_offs

LIMITS = ("train_limit", "test_limit", "max_steps")
_COLLAPSED = 1.2  # times chance, as the paper marks its cells


class Caution(NamedTuple):
    """A warning: a short title, an explanation, and the runs concerned."""

    title: str
    text: str
    places: tuple[str, ...] = ()


def find_cautions(
    groups: Sequence[Group], problems: Sequence[Problem]
) -> list[Caution]:
    """Return every warning about the runs, the gravest first."""
    runs = [run for group in groups for run in group.runs]
    found = [
        *_collapsed(runs),
        *_pointless(groups),
        *_suspect_attacks(runs),
        *_cut_short(runs),
        *_missing(problems),
        *_repeated(groups),
        *_shortened(runs),
        *_mostly_hand_offs(runs),
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
            f"{len(places)} of {len(runs)} runs ended no better than guessing. The "
            "success of an attack on such a model says nothing about the codec.",
            tuple(places),
        )


def _pointless(groups: Sequence[Group]) -> Iterator[Caution]:
    below = [
        f"{group.method}: {group.labels['task']}"
        for group in groups
        if beats_alone(group, groups) is False
    ]
    if below:
        yield Caution(
            "No better than without the server",
            f"Settings that reach no more than the clients reach alone: {len(below)}. "
            "Alone means with codec none: their head and a linear layer, behind a "
            "hidden one where the code is made by one too. It sends nothing and so "
            "leaks nothing.",
            tuple(below),
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
            "image. Either the codec hides well or the attack is broken: this figure "
            "alone does not tell, but stronger attacks on the same run do.",
            tuple(weak),
        )
    same = list(_identical(runs))
    if same:
        yield Caution(
            "Bit-identical attack figures",
            "Runs with different settings or seeds gave exactly the same figures. A "
            "working attack does not do that.",
            tuple(same),
        )


def _cut_short(runs: Sequence[Run]) -> Iterator[Caution]:
    places = [
        f"{run.path.name}: {attack_label(entry)} {entry.get('form', '')}".strip()
        for run in runs
        for entry in run.audit
        if entry.get("converged") is False
    ]
    if places:
        yield Caution(
            "Attacks that had not converged",
            f"{len(places)} attacks were still getting better, or did not reproduce "
            "the codes. Their figures are a lower bound of what such an attacker gets "
            "and cannot rank codecs.",
            tuple(places),
        )


def _identical(runs: Sequence[Run]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for run in runs:
        for entry in run.audit:
            is_other = entry.get("kind") in ("trivial", *NO_IMAGES)
            if is_other or not entry["metrics"]:
                continue
            figures = json.dumps(
                [attack_label(entry), entry["metrics"]], sort_keys=True
            )
            first = seen.setdefault(figures, run.path.name)
            if first != run.path.name:
                yield f"{attack_label(entry)}: {first} and {run.path.name}"


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
            f"{len(places)} runs have the same settings and seed as another run here. "
            "They are left out: a repeated run does not count as a second seed.",
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
            f"{', '.join(sorted(ways))}. They cannot rank methods that are close.",
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
            f"{which} {rest} run with one seed only. Differences of a point "
            "or two may be luck.",
        )


def _mostly_hand_offs(runs: Sequence[Run]) -> Iterator[Caution]:
    shares = [(run, hand_offs.share(run.record["bytes"])) for run in runs]
    places = [
        f"{run.path.name}: {share:.0%}"
        for run, share in shares
        if share > hand_offs.DOMINANT
    ]
    if places:
        yield Caution(
            "Mostly hand-offs",
            f"In {len(places)} of {len(runs)} runs most bytes carried heads from one "
            "client to the next. The total ratio counts them, the step ratio does not. "
            f"{hand_offs.REMEDY}",
            tuple(places),
        )


def _chance(run: Run) -> float | None:
    """Return the accuracy of always predicting the most frequent class.

    None without classes, or where the task measures no accuracy.
    """
    histogram = run.record.get("label_histogram")
    if not histogram or "test_accuracy" not in run.record:
        return None
    counts = [sum(column) for column in zip(*histogram, strict=True)]
    return float(max(counts) / max(sum(counts), 1))


def _is_at(run: Run, chance: float) -> bool:
    accuracy = run.record.get("test_accuracy")
    return accuracy is None or accuracy <= _COLLAPSED * chance


def _percent(run: Run) -> str:
    accuracy = run.record.get("test_accuracy")
    return "no finite accuracy" if accuracy is None else f"{accuracy:.1%}"
