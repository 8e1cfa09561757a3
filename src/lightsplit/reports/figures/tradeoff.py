"""Utility against what it costs: the frontier of audited runs, or bytes alone."""

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
from lightsplit.reports.figures.frontier import frontier
from lightsplit.reports.frontier import points
from lightsplit.reports.groups import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def tradeoff(groups: Sequence[Group]) -> Picture | None:
    """Return the frontier; without an audit, accuracy against bytes."""
    return frontier(points(groups)) or _utility(groups)


def _utility(groups: Sequence[Group]) -> Picture | None:
    chosen = [group for group in groups if group.monitored is not None]
    if not chosen:
        return None
    settings = list(by_setting(chosen).values())
    lines = [_line(group) for members in settings for group in members]
    names = ", ".join(dict.fromkeys(group.monitor.name for group in chosen))
    note = (
        f"{names.capitalize()} on the test set against bytes of all messages per "
        "sample. Nothing was audited, so leakage is not in the picture: "
        "run lightsplit audit on runs with images."
    )
    shown, note = first_panels(settings, note)

    def draw(ink: str) -> "Figure":
        return _draw(shown, ink)

    return Picture("tradeoff", "Utility and bytes", note, draw, lines)


def _draw(settings: list[list[Group]], ink: str) -> "Figure":
    titles = [
        f"{members[0].labels['task']}: {members[0].labels['setting']}"
        for members in settings
    ]
    figure, axes = panels(titles, ink)
    for axis, members in zip(axes, settings, strict=True):
        _draw_panel(axis, members, ink)
    legend(figure, axes[0], ink)
    return figure


def _draw_panel(axis: "Axes", members: list[Group], ink: str) -> None:
    labelled: set[str] = set()
    for group in members:
        codec, monitored = group.settings["codec"], group.monitored
        place = (
            group.step_bytes / 1024,
            group.monitor.shown(monitored.mean) if monitored else 0.0,
        )
        label = "_nolegend_" if codec in labelled else codec
        labelled.add(codec)
        axis.scatter(*place, s=60, color=colour(codec), alpha=0.75, label=label, lw=0)
        axis.annotate(
            group.method.removeprefix(codec).strip(),
            place,
            xytext=(5, 5),
            textcoords="offset points",
            fontsize=7.5,
            color=ink,
        )
    axis.margins(0.18)
    axis.set_xlabel("KiB per sample and step")
    axis.set_ylabel(members[0].monitor.axis)


def _line(group: Group) -> dict[str, Any]:
    monitored = group.monitored
    return {
        "dataset": group.settings["dataset"],
        "setting": group.labels["setting"],
        "method": group.method,
        "figure": group.monitor.name,
        "value": monitored.mean if monitored else None,
        "step_bytes_per_sample": group.step_bytes,
    }
