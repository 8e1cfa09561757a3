"""Bytes of a training sample by message, stacked, raw against the rest."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lightsplit.reports.figures.drawing import (
    Picture,
    by_setting,
    first_panels,
    legend,
    panels,
)
from lightsplit.reports.groups import Group
from lightsplit.reports.tables import setting_text

# what is sent, and its colour: the cut in blues, the back cut in oranges, the rest grey
PARTS = {
    "code": "#2f7fd8",
    "code_gradient": "#8fbcf0",
    "output": "#d9730d",
    "output_gradient": "#f0b27a",
    "labels": "#a259c4",
    "hand_off": "#2a9d6f",
    "framing": "#8a8f98",
    "evaluation": "#c3c7cd",
}


def traffic(groups: Sequence[Group]) -> Picture | None:
    """Return the picture; None without runs."""
    if not groups:
        return None
    settings = [_different(members) for members in by_setting(groups).values()]
    lines = [_line(group) for members in settings for group in members]
    note = (
        "KiB per training sample. The paper counts the two blue messages; output and "
        "output gradient cross the wire as well, and with shared heads so does every "
        "hand-off of head and tail to the next client."
    )
    shown, note = first_panels(settings, note)
    return Picture(
        "bytes", "Bytes by message", note, lambda ink: _draw(shown, ink), lines
    )


def _different(members: list[Group]) -> list[Group]:
    """Return one group for each way of sending: λ and seeds do not change the bytes."""
    seen: dict[tuple[Any, ...], Group] = {}
    for group in members:
        own = group.settings
        seen.setdefault((own["codec"], own["ratio"]), group)
    return list(seen.values())


def _draw(settings: list[list[Group]], ink: str) -> Figure:
    titles = [
        f"{members[0].settings['dataset']}: {setting_text(members[0].settings)}"
        for members in settings
    ]
    figure, axes = panels(titles, ink)
    for axis, members in zip(axes, settings, strict=True):
        _draw_panel(axis, members)
    legend(figure, axes[0], ink)
    return figure


def _draw_panel(axis: Axes, members: list[Group]) -> None:
    names = [_name(group) for group in members]
    start = [0.0] * len(members)
    for part, shade in PARTS.items():
        widths = [group.per_sample(part) / 1024 for group in members]
        if any(widths):
            label = part.replace("_", " ")
            axis.barh(names, widths, left=start, color=shade, label=label, height=0.66)
        start = [a + b for a, b in zip(start, widths, strict=True)]
    axis.invert_yaxis()
    axis.grid(visible=False, axis="y")
    axis.set_xlabel("KiB per sample")


def _name(group: Group) -> str:
    own = group.settings
    return (
        str(own["codec"])
        if own["codec"] == "raw"
        else f"{own['codec']} {own['ratio']:g}x"
    )


def _line(group: Group) -> dict[str, Any]:
    return {
        "dataset": group.settings["dataset"],
        "setting": setting_text(group.settings),
        "method": _name(group),
        **{f"{part}_bytes_per_sample": group.per_sample(part) for part in PARTS},
    }
