"""The frontier as a picture: up is better, left leaks less.

A panel for each setting and measure of leakage. The area of a point is the bytes of a
step; the dashed line is what the clients reach without the server; in the shaded part
an attacker gets no more than a guess without any code does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lightsplit.extras import require
from lightsplit.reports.figures.drawing import (
    PANELS,
    Picture,
    by_setting,
    colour,
    first_panels,
    legend,
    panels,
)
from lightsplit.reports.frontier import (
    LEAKS,
    REIDENTIFICATION,
    SSIM,
    Point,
    frontier_lines,
    leaks,
    pareto,
)
from lightsplit.reports.groups import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LARGEST, _SMALLEST = 420.0, 30.0  # areas of points, in points²
_AXES = {
    SSIM: "worst SSIM of the ladder",
    REIDENTIFICATION: "images named by the worst attack",
}
_LINEAR = 0.02  # shares of named images below it are drawn on a linear scale
_ADVICE = "#d0342c"
_LONG = 42  # letters of a method that needs a row of the legend for itself
_ROW_INCHES = 0.2
TITLE = "Privacy, utility and bytes"


@dataclass(frozen=True)
class Marks:
    """What an advice adds to the picture.

    Attributes:
        chosen: the group that is advised.
        limits: the most leakage that is allowed, by setting and metric.
    """

    chosen: Group | None = None
    limits: Mapping[tuple[str, str], float] = field(default_factory=dict)


NO_MARKS = Marks()


def frontier(found: Sequence[Point], marks: Marks = NO_MARKS) -> Picture | None:
    """Return the picture; None if nothing was audited."""
    audited = [point for point in found if leaks(point)]
    if not audited:
        return None
    names = ", ".join(dict.fromkeys(point.group.monitor.name for point in audited))
    note = (
        f"{names.capitalize()} on the test set against the worst figure of all attacks "
        "on the codes: up is better, left leaks less. The area of a point is the bytes "
        "of a step. Dashed: what the clients reach without the server (codec none); a "
        "point below that line is pointless. Shaded: what a guess gets that sees no "
        "code. The thin line joins the settings that no other one with codes beats; "
        "they have an edge. Diamonds are LightSplit's own codecs."
    )
    groups = [point.group for point in audited]
    settings = list(by_setting(groups))
    metrics = [m for m in LEAKS if any(m in leaks(point) for point in audited)]
    shown, note = first_panels(settings, note, PANELS // len(metrics))
    if marks.chosen is not None:
        note += " Red: the advice, and dotted the limits that were given."

    def draw(ink: str) -> "Figure":
        return _draw(found, shown, metrics, marks, ink)

    return Picture("tradeoff", TITLE, note, draw, frontier_lines(found))


def numbered(found: Sequence[Point]) -> dict[str, int]:
    """Return the number of each method in the picture; what sends nothing has none."""
    methods = dict.fromkeys(point.method for point in found if not point.is_alone)
    return {method: number for number, method in enumerate(methods, start=1)}


def _draw(
    found: Sequence[Point],
    settings: Sequence[str],
    metrics: Sequence[str],
    marks: Marks,
    ink: str,
) -> "Figure":
    places = [(setting, metric) for setting in settings for metric in metrics]
    members = {s: [p for p in found if p.group.setting == s] for s in settings}
    titles = [_title(members[s][0]) if m == metrics[0] else "" for s, m in places]
    figure, axes = panels(titles, ink, columns=len(metrics))
    numbers = numbered(found)
    for axis, (setting, metric) in zip(axes, places, strict=True):
        panel = _Panel(axis, members[setting], metric, ink)
        panel.draw_yardsticks(marks.limits.get((setting, metric)), marks.chosen)
        panel.draw_points(numbers, marks.chosen)
    _add_key(axes[0], numbers, found, ink, chosen=marks.chosen)
    columns = 1 if max(map(len, numbers)) > _LONG else 2
    _make_room(figure, -(-len(axes[0].get_legend_handles_labels()[1]) // columns))
    legend(figure, axes[0], ink, columns=columns)
    return figure


def _title(point: Point) -> str:
    return f"{point.group.labels['task']}: {point.group.labels['setting']}"


def _make_room(figure: "Figure", rows: int) -> None:
    """Make the figure higher by the rows of its legend."""
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + rows * _ROW_INCHES)


class _Panel:
    """One measure of leakage in one setting."""

    def __init__(
        self, axis: "Axes", members: Sequence[Point], metric: str, ink: str
    ) -> None:
        self.axis = axis
        self.metric = metric
        self.ink = ink
        self.members = members
        self.sent = [
            p for p in members if not p.is_alone and p.leak(metric) is not None
        ]
        self.monitor = members[0].group.monitor
        axis.set_xlabel(_AXES[metric])
        axis.set_ylabel(self.monitor.axis)
        if metric == REIDENTIFICATION:
            _set_share_scale(axis)

    def draw_yardsticks(self, limit: float | None, chosen: Group | None) -> None:
        """Draw the trivial attackers, the clients alone and the limit."""
        guesses = [p.guess(self.metric) for p in self.sent]
        known = [guess for guess in guesses if guess is not None]
        if known:
            self.axis.axvspan(-_LINEAR, max(known), color=self.ink, alpha=0.08, lw=0)
        for point in self.members:
            if point.is_alone and point.value is not None:
                shown = self.monitor.shown(point.value)
                shade = _ADVICE if point.group is chosen else self.ink
                self.axis.axhline(shown, color=shade, lw=1.1, ls="--", zorder=1)
        if limit is not None:
            self.axis.axvline(limit, color=_ADVICE, lw=1.0, ls=":", zorder=1)

    def draw_points(self, numbers: Mapping[str, int], chosen: Group | None) -> None:
        """Draw the settings, and the line of those that no other one beats."""
        largest = max((p.group.step_bytes for p in self.sent), default=0) or 1.0
        edge = pareto(self.sent, self.metric)
        self.axis.plot(*self._places(edge), color=self.ink, lw=0.8, alpha=0.45)
        for point in self.sent:
            xs, ys = self._places([point])
            area = max(_SMALLEST, _LARGEST * point.group.step_bytes / largest)
            shade = colour(point.group.settings["codec"])
            self.axis.scatter(
                xs,
                ys,
                s=area,
                color=shade,
                alpha=0.8,
                lw=1.2 if point in edge else 0,
                edgecolors=self.ink,
                marker=_marker(point.is_ours),
                zorder=3,
            )
            if point.group is chosen:
                self._ring(xs[0], ys[0], area)
            self._number(xs[0], ys[0], numbers[point.method], area)
        self.axis.margins(0.14, 0.16)
        self.axis.set_xlim(left=-0.1 * _LINEAR)  # room for a point at 0

    def _places(self, found: Sequence[Point]) -> tuple[list[float], list[float]]:
        xs = [p.leak(self.metric) or 0.0 for p in found]
        ys = [self.monitor.shown(p.value or 0.0) for p in found]
        return xs, ys

    def _ring(self, x: float, y: float, area: float) -> None:
        self.axis.scatter(
            x, y, s=area + 130, facecolors="none", edgecolors=_ADVICE, lw=1.6, zorder=4
        )

    def _number(self, x: float, y: float, number: int, area: float) -> None:
        away = 0.4 * area**0.5 + 3  # from the centre, just beyond the point's edge
        self.axis.annotate(
            str(number),
            (x, y),
            xytext=(away, away),
            textcoords="offset points",
            fontsize=8.5,
            color=self.ink,
            zorder=5,
        )


def _marker(is_ours: bool) -> str:
    return "D" if is_ours else "o"


def _set_share_scale(axis: "Axes") -> None:
    """Give few per cent as much room as many: a scale that is linear near 0."""
    axis.set_xscale("symlog", linthresh=_LINEAR, linscale=0.6)
    ticks = (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    axis.set_xticks(ticks, [f"{100 * tick:g}%" for tick in ticks])
    axis.minorticks_off()


def _add_key(
    axis: "Axes",
    numbers: Mapping[str, int],
    found: Sequence[Point],
    ink: str,
    *,
    chosen: Group | None,
) -> None:
    """Add an empty artist per entry of the legend."""
    lines = require("matplotlib.lines", extra="reports")
    patches = require("matplotlib.patches", extra="reports")
    first = {point.method: point for point in reversed(found)}
    dot = {"ls": "", "markersize": 7, "alpha": 0.8, "mew": 0}
    for method, number in numbers.items():
        own = {"color": colour(first[method].group.settings["codec"])}
        own["marker"] = _marker(first[method].is_ours)
        axis.add_line(lines.Line2D([], [], label=f"{number}  {method}", **own, **dot))
    alone = [point.group for point in found if point.is_alone]
    if alone:
        is_advice = chosen in alone
        text = "without the server (codec none)" + (", the advice" * is_advice)
        shade = _ADVICE if is_advice else ink
        axis.add_line(lines.Line2D([], [], color=shade, ls="--", lw=1.1, label=text))
    text = "a guess without any code"
    axis.add_patch(
        patches.Rectangle((0, 0), 0, 0, color=ink, alpha=0.12, lw=0, label=text)
    )
    if chosen is not None and chosen not in alone:
        ring = {"marker": "o", "markersize": 10, "mfc": "none", "mec": _ADVICE}
        axis.add_line(lines.Line2D([], [], ls="", label="the advice", **ring))
