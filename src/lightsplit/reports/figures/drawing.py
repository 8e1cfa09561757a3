"""Pictures that match the page: SVG in its colours, or separate files.

Text and axes are drawn in one ink. In the page the ink becomes ``currentColor``, so a
picture is readable in light and in dark mode; a file is dark on white.
"""

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from lightsplit.extras import require
from lightsplit.reports.groups import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

T = TypeVar("T")

COLOURS = {
    "raw": "#8a8f98",
    "lightsplit-f": "#2f7fd8",
    "lightsplit-l": "#d9730d",
    "learned-1x1": "#2a9d6f",
    "topk": "#a259c4",
    "lightsplit-b": "#c0506f",
    "fsq": "#b58900",
}
OTHER_COLOUR = "#6b7a3a"
PANELS = 12  # most panels of a picture; the CSV has the rest
PAGE_INK = "#010203"
FILE_INK = "#222222"
PANEL_WIDTH, PANEL_HEIGHT = 4.2, 3.1


@dataclass(frozen=True)
class Picture:
    """A picture that can be drawn in any ink, together with its figures."""

    name: str
    title: str
    note: str
    draw: Callable[[str], "Figure"]
    lines: list[dict[str, Any]] = field(default_factory=list)

    def svg(self) -> str:
        """Return an ``<svg>`` element for the page."""
        text = self._saved("svg", PAGE_INK).decode()
        text = text[text.index("<svg") :].replace(PAGE_INK, "currentColor")
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        # Several pictures share the page, so their ids must differ.
        text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{self.name}-", text)
        width = re.search(r'width="([\d.]+)pt"', text)
        points = float(width[1]) if width else 0.0
        size = f"max-width:{1.6 * points:.0f}px;min-width:{0.9 * points:.0f}px"
        label = f'role="img" aria-label="{self.title}" class="picture" style="{size}"'
        text = re.sub(r'(width|height)="[\d.]+pt" ', "", text, count=2)
        return text.replace("<svg ", f"<svg {label} ", 1)

    def file(self, kind: str) -> bytes:
        """Return the picture as a separate file, ``svg`` or ``png``."""
        return self._saved(kind, FILE_INK)

    def _saved(self, kind: str, ink: str) -> bytes:
        buffer = io.BytesIO()
        matplotlib = require("matplotlib", extra="reports")
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": self.name}):
            figure = self.draw(ink)
            is_page = ink == PAGE_INK
            figure.savefig(
                buffer,
                format=kind,
                dpi=160,
                transparent=is_page,
                bbox_inches="tight",
                metadata={"Date": None} if kind == "svg" else None,
            )
        return buffer.getvalue()


def first_panels(found: list[T], note: str, most: int = PANELS) -> tuple[list[T], str]:
    """Return the panels that fit into a picture, and a note that mentions the rest."""
    if len(found) > most:
        note = f"{note} The first {most} of {len(found)} are drawn; the CSV has all."
    return found[:most], note


def panels(
    titles: Sequence[str], ink: str, *, columns: int = 3
) -> "tuple[Figure, list[Axes]]":
    """Return a figure with one small plot per title and a limit per row."""
    columns = min(columns, len(titles))
    rows = -(-len(titles) // columns)
    figure: Figure = require("matplotlib.figure", extra="reports").Figure(
        figsize=(PANEL_WIDTH * columns, PANEL_HEIGHT * rows), layout="constrained"
    )
    grid = figure.subplots(rows, columns, squeeze=False)
    axes = list(grid.flat)
    for spare in axes[len(titles) :]:
        spare.set_visible(False)
    for axis, title in zip(axes, titles, strict=False):
        axis.set_title(title, fontsize=9, loc="left", color=ink)
        style(axis, ink)
    return figure, axes[: len(titles)]


def style(axis: "Axes", ink: str) -> None:
    """Draw frame, ticks and labels thinly in one ink."""
    for side, spine in axis.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(ink)
        spine.set_alpha(0.4)
    axis.tick_params(colors=ink, labelsize=8, length=3, width=0.6)
    axis.xaxis.label.set(color=ink, fontsize=8.5)
    axis.yaxis.label.set(color=ink, fontsize=8.5)
    axis.grid(visible=True, color=ink, alpha=0.12, linewidth=0.6)
    axis.set_axisbelow(True)


def legend(figure: "Figure", axis: "Axes", ink: str, *, columns: int = 5) -> None:
    """Put one legend for all panels below them; entries of ``axis`` come first."""
    entries: dict[str, Any] = {}
    for panel in (axis, *figure.axes):
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        figure.legend(
            list(entries.values()),
            list(entries),
            loc="outside lower center",
            ncols=min(columns, len(entries)),
            frameon=False,
            fontsize=8.5,
            labelcolor=ink,
        )


def colour(codec: str) -> str:
    """Return the colour of a codec, the same in every picture."""
    return COLOURS.get(codec, OTHER_COLOUR)


def by_setting(groups: Sequence[Group]) -> dict[str, list[Group]]:
    """Return the groups of each setting, in their order."""
    found: dict[str, list[Group]] = {}
    for group in groups:
        found.setdefault(group.setting, []).append(group)
    return found
