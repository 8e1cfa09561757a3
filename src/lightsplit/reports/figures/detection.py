"""Scores of malicious clients along each factor: one picture per detector."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lightsplit.reports.detections import Sight, detectors, over_seeds, sights
from lightsplit.reports.families import FACTORS, Family, factor_order, factor_text
from lightsplit.reports.figures.drawing import (
    Picture,
    colour,
    first_panels,
    legend,
    panels,
)
from lightsplit.reports.groups import Group, Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The score of cosine detectors is the paper's |MAD-z| of one of these signals.
SIGNALS = {"cosine-output": "mean output r̄", "cosine-code": "mean code z̄"}
_STYLES = ("-", "--", ":", "-.")


class Panel(NamedTuple):
    """The groups along one factor of a family."""

    family: Family
    factor: str
    values: list[float]
    groups: list[Group]


def detection_pictures(families: Sequence[Family]) -> list[Picture]:
    """Return one picture per detector that judged poisoned runs along a factor."""
    poisoned = [family for family in families if family.is_poisoned]
    members = [group for family in poisoned for group in family.groups]
    pictures = [_picture(poisoned, detector) for detector in detectors(members)]
    return [picture for picture in pictures if picture.lines]


def _picture(poisoned: Sequence[Family], detector: str) -> Picture:
    found = [
        panel
        for family in poisoned
        for factor in FACTORS
        if len((panel := _panel(family, factor, detector)).values) > 1
    ]
    signal = SIGNALS.get(detector)
    what = f"|MAD-z| on the {signal}" if signal else f"scores by {detector}"
    note = (
        f"Scores of malicious clients at the last verdict of {detector}. If there are "
        "several, the score is the least noticed client's: in a run above the dashed "
        "threshold all of them are flagged. Lines are means over seeds, small "
        "dots single runs. One factor is changed at a time. Linear below 1, "
        "logarithmic above."
    )
    title = f"Backdoors: {what}"
    lines = [line for panel in found for line in _lines(panel, detector)]
    shown, note = first_panels(found, note)
    return Picture(
        f"detection-{detector}",
        title,
        note,
        lambda ink: _draw(shown, detector, ink),
        lines,
    )


def _panel(family: Family, factor: str, detector: str) -> Panel:
    groups = [g for g in family.along(factor) if _smallest(g, detector)]
    found = {group.settings[factor] for group in groups}
    values = sorted(found, key=lambda value: factor_order(factor, value))
    return Panel(family, factor, values, groups)


def _smallest(group: Group, detector: str) -> Spread | None:
    return over_seeds(group, detector, lambda sight: sight.smallest)


def _draw(shown: Sequence[Panel], detector: str, ink: str) -> "Figure":
    datasets = {panel.family.title for panel in shown}
    titles = [
        FACTORS[panel.factor]
        if len(datasets) == 1
        else f"{panel.family.groups[0].settings['dataset']}: {FACTORS[panel.factor]}"
        for panel in shown
    ]
    figure, axes = panels(titles, ink, columns=2)
    for axis, panel in zip(axes, shown, strict=True):
        _draw_panel(axis, panel, detector, ink)
    legend(figure, max(axes, key=lambda axis: len(axis.lines)), ink)
    return figure


def _draw_panel(axis: "Axes", panel: Panel, detector: str, ink: str) -> None:
    counts: dict[str, int] = {}
    for method, members in _by_method(panel).items():
        codec = members[0].settings["codec"]
        number = counts.get(codec, 0)
        counts[codec] = number + 1
        places = [panel.values.index(g.settings[panel.factor]) for g in members]
        axis.plot(
            places,
            [_mean(group, detector) for group in members],
            linestyle=_STYLES[number % len(_STYLES)],
            color=colour(codec),
            linewidth=1.6,
            marker="o",
            markersize=4,
            label=method,
        )
        for place, group in zip(places, members, strict=True):
            singles = _singles(group, detector)
            axis.plot([place] * len(singles), singles, ".", color=colour(codec), ms=3)
    for threshold in _thresholds(panel, detector):
        label = f"threshold {threshold:.3g}"
        axis.axhline(threshold, color=ink, lw=1, ls="--", alpha=0.6, label=label)
    _scale(axis, panel)
    axis.set_ylabel("|MAD-z|" if detector in SIGNALS else "score")


def _scale(axis: "Axes", panel: Panel) -> None:
    """Space the factor's values evenly; start scores at 0, logarithmic above 1."""
    axis.set_yscale("symlog", linthresh=1)
    axis.set_ylim(0, 1.5 * max(axis.dataLim.ymax, 1))
    axis.yaxis.set_major_formatter(lambda score, _: f"{score:g}")
    texts = [factor_text(panel.factor, value) for value in panel.values]
    axis.set_xticks(range(len(texts)), texts)


def _by_method(panel: Panel) -> dict[str, list[Group]]:
    """Return the groups of each method, in the order of the factor's values."""
    found: dict[str, list[Group]] = {}
    for group in panel.groups:
        found.setdefault(group.method, []).append(group)
    for members in found.values():
        members.sort(key=lambda g: panel.values.index(g.settings[panel.factor]))
    return found


def _seen(group: Group, detector: str) -> list[Sight]:
    every = [sight for run in group.runs for sight in sights(run)]
    return [sight for sight in every if sight.detector == detector]


def _mean(group: Group, detector: str) -> float:
    found = _smallest(group, detector)
    return found.mean if found else 0.0  # a panel has only groups with a score


def _singles(group: Group, detector: str) -> list[float]:
    """Return the scores of single runs if there are several."""
    found = [s.smallest for s in _seen(group, detector) if s.smallest is not None]
    return found if len(found) > 1 else []


def _thresholds(panel: Panel, detector: str) -> list[float]:
    found = {s.threshold for group in panel.groups for s in _seen(group, detector)}
    return sorted(found)


def _lines(panel: Panel, detector: str) -> list[dict[str, Any]]:
    return [
        {
            "dataset": group.settings["dataset"],
            "factor": panel.factor,
            "value": group.settings[panel.factor],
            "method": method,
            "detector": detector,
            "smallest_score": found.mean,
            "deviation": found.deviation,
            "seeds": found.seeds,
            "threshold": _seen(group, detector)[0].threshold,
        }
        for method, members in _by_method(panel).items()
        for group in members
        if (found := _smallest(group, detector))
    ]
