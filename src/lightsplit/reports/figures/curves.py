"""The test figure of each task over training, one line per method."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lightsplit.reports.figures.drawing import (
    Picture,
    by_setting,
    colour,
    first_panels,
    legend,
    panels,
)
from lightsplit.reports.groups import Group, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLES = ("-", "--", ":", "-.")


def curves(groups: Sequence[Group]) -> Picture | None:
    """Return the picture; None if no run was evaluated."""
    drawn = [group for group in groups if _points(group)]
    if not drawn:
        return None
    settings = list(by_setting(drawn).values())
    lines = [
        _line(group, step, value)
        for members in settings
        for group in members
        for step, value in _points(group)
    ]
    names = dict.fromkeys(group.monitor.name for group in drawn)
    note = (
        f"{', '.join(names).capitalize()} on the test set by the number of steps of "
        "all clients, mean over seeds."
    )
    shown, note = first_panels(settings, note)
    return Picture(
        "curves", "Training curves", note, lambda ink: _draw(shown, ink), lines
    )


def _draw(settings: list[list[Group]], ink: str) -> "Figure":
    titles = [
        f"{members[0].labels['task']}: {members[0].labels['setting']}"
        for members in settings
    ]
    figure, axes = panels(titles, ink)
    for axis, members in zip(axes, settings, strict=True):
        _draw_panel(axis, members)
    legend(figure, max(axes, key=lambda axis: len(axis.lines)), ink)
    return figure


def _draw_panel(axis: "Axes", members: list[Group]) -> None:
    counts: dict[str, int] = {}
    for group in members:
        codec = group.settings["codec"]
        number = counts.get(codec, 0)
        counts[codec] = number + 1
        steps, values = zip(*_points(group), strict=True)
        axis.plot(
            steps,
            [group.monitor.shown(value) for value in values],
            linestyle=_STYLES[number % len(_STYLES)],
            color=colour(codec),
            linewidth=1.6,
            marker="o",
            markersize=2.5,
            label=group.method,
        )
    axis.set_xlabel("steps")
    axis.set_ylabel(members[0].monitor.axis)


def _points(group: Group) -> list[tuple[int, float]]:
    """Return (step, mean figure) for the steps at which every seed was evaluated."""
    by_step: dict[int, list[float | None]] = {}
    for run in group.runs:
        for line in run.metrics:
            by_step.setdefault(line["step"], []).append(line.get(group.monitor.key))
    means = {step: spread(values) for step, values in by_step.items()}
    return [(step, mean.mean) for step, mean in sorted(means.items()) if mean]


def _line(group: Group, step: int, value: float) -> dict[str, Any]:
    return {
        "dataset": group.settings["dataset"],
        "setting": group.labels["setting"],
        "method": group.method,
        "step": step,
        "figure": group.monitor.name,
        "value": value,
    }
