"""Bytes per training sample, stacked by message, for every method."""

import json
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lightsplit.reports.figures.drawing import (
    Picture,
    by_setting,
    first_panels,
    legend,
    panels,
)
from lightsplit.reports.groups import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours of the messages: front cut in blues, back cut in oranges, the rest in grey.
_LABEL_WIDTH = 26  # characters of a bar's label, before it breaks into lines
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
    """Return one group per way of sending; objectives do not change the bytes."""
    seen: dict[str, Group] = {}
    for group in members:
        tables = group.runs[0].tables
        sent = [tables[name] for name in ("codec", "output_codec", "wire")]
        seen.setdefault(json.dumps(sent, sort_keys=True), group)
    return list(seen.values())


def _draw(settings: list[list[Group]], ink: str) -> "Figure":
    titles = [
        f"{members[0].labels['task']}: {members[0].labels['setting']}"
        for members in settings
    ]
    figure, axes = panels(titles, ink)
    for axis, members in zip(axes, settings, strict=True):
        _draw_panel(axis, members)
    legend(figure, axes[0], ink)
    return figure


def _draw_panel(axis: "Axes", members: list[Group]) -> None:
    names = [textwrap.fill(_name(group), _LABEL_WIDTH) for group in members]
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
    return group.method


def _line(group: Group) -> dict[str, Any]:
    return {
        "dataset": group.settings["dataset"],
        "setting": group.labels["setting"],
        "method": _name(group),
        **{f"{part}_bytes_per_sample": group.per_sample(part) for part in PARTS},
    }
