"""Test accuracy over training, one line per method."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lightsplit.reports.figures.drawing import (
    Picture,
    by_setting,
    colour,
    first_panels,
    legend,
    panels,
)
from lightsplit.reports.groups import Group, spread
from lightsplit.reports.tables import setting_text

_STYLES = ("-", "--", ":", "-.")


def curves(groups: Sequence[Group]) -> Picture | None:
    """Return the picture; None where no run was evaluated."""
    drawn = [group for group in groups if _points(group)]
    if not drawn:
        return None
    settings = list(by_setting(drawn).values())
    lines = [
        _line(group, step, accuracy)
        for members in settings
        for group in members
        for step, accuracy in _points(group)
    ]
    note = (
        "Accuracy on the test set after so many steps of all clients, mean over seeds."
    )
    shown, note = first_panels(settings, note)
    return Picture(
        "curves", "Training curves", note, lambda ink: _draw(shown, ink), lines
    )


def _draw(settings: list[list[Group]], ink: str) -> Figure:
    titles = [
        f"{members[0].settings['dataset']}: {setting_text(members[0].settings)}"
        for members in settings
    ]
    figure, axes = panels(titles, ink)
    for axis, members in zip(axes, settings, strict=True):
        _draw_panel(axis, members)
    legend(figure, max(axes, key=lambda axis: len(axis.lines)), ink)
    return figure


def _draw_panel(axis: Axes, members: list[Group]) -> None:
    counts: dict[str, int] = {}
    for group in members:
        codec = group.settings["codec"]
        number = counts.get(codec, 0)
        counts[codec] = number + 1
        steps, accuracies = zip(*_points(group), strict=True)
        axis.plot(
            steps,
            [100 * accuracy for accuracy in accuracies],
            linestyle=_STYLES[number % len(_STYLES)],
            color=colour(codec),
            linewidth=1.6,
            marker="o",
            markersize=2.5,
            label=group.method,
        )
    axis.set_xlabel("steps")
    axis.set_ylabel("test accuracy, %")


def _points(group: Group) -> list[tuple[int, float]]:
    """Return (step, mean accuracy) where every seed was evaluated."""
    by_step: dict[int, list[float | None]] = {}
    for run in group.runs:
        for line in run.metrics:
            by_step.setdefault(line["step"], []).append(line.get("test_accuracy"))
    means = {step: spread(values) for step, values in by_step.items()}
    return [(step, mean.mean) for step, mean in sorted(means.items()) if mean]


def _line(group: Group, step: int, accuracy: float) -> dict[str, Any]:
    return {
        "dataset": group.settings["dataset"],
        "setting": setting_text(group.settings),
        "method": group.method,
        "step": step,
        "test_accuracy": accuracy,
    }
