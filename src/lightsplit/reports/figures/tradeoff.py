"""Test figures against leakage: one point per method, sized by its messages."""

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
from lightsplit.reports.groups import Group, alone_partner

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LARGEST = 420.0  # area of the raw codec's point, in points²


def tradeoff(groups: Sequence[Group]) -> Picture | None:
    """Return the picture; without an audit it shows accuracy against bytes alone."""
    audited = [group for group in groups if group.leakage() is not None]
    chosen = audited or [g for g in groups if g.monitored is not None]
    if not chosen:
        return None
    settings = list(by_setting(chosen).values())
    lines = [_line(group) for members in settings for group in members]
    names = ", ".join(dict.fromkeys(group.monitor.name for group in chosen))
    if audited:
        title = "Privacy, utility and bytes"
        note = (
            f"Across: {names} on the test set; up leaks more: SSIM of the strongest "
            "attack that is not trivial. The area of a point is the bytes of a step. "
            "The dashed line is what clients reach without the server (codec none)."
        )
    else:
        title = "Utility and bytes"
        note = (
            f"{names.capitalize()} on the test set against bytes of all messages per "
            "sample. Nothing was audited, so leakage is not in the picture: "
            "run lightsplit audit on runs with images."
        )
    shown, note = first_panels(settings, note)
    alone = [alone_partner(members[0], groups) for members in shown]

    def draw(ink: str) -> "Figure":
        return _draw(shown, alone, bool(audited), ink)

    return Picture("tradeoff", title, note, draw, lines)


def _draw(
    settings: list[list[Group]],
    alone: list[Group | None],
    is_audited: bool,
    ink: str,
) -> "Figure":
    titles = [
        f"{members[0].labels['task']}: {members[0].labels['setting']}"
        for members in settings
    ]
    figure, axes = panels(titles, ink)
    for axis, members, without in zip(axes, settings, alone, strict=True):
        _draw_panel(axis, members, is_audited, ink)
        if is_audited and without is not None and without.monitored is not None:
            value = without.monitor.shown(without.monitored.mean)
            axis.axvline(value, color=ink, lw=0.8, ls="--")
    legend(figure, axes[0], ink)
    return figure


def _draw_panel(axis: "Axes", members: list[Group], is_audited: bool, ink: str) -> None:
    largest = max(group.step_bytes for group in members) or 1.0
    labelled: set[str] = set()
    for group in members:
        codec = group.settings["codec"]
        x, y = _position(group, is_audited)
        area = _LARGEST * group.step_bytes / largest if is_audited else 60
        label = "_nolegend_" if codec in labelled else codec
        labelled.add(codec)
        axis.scatter(x, y, s=area, color=colour(codec), alpha=0.75, label=label, lw=0)
        axis.annotate(
            _point_label(group),
            (x, y),
            xytext=(5, 5),
            textcoords="offset points",
            fontsize=7.5,
            color=ink,
        )
    axis.margins(0.18)
    if is_audited:
        axis.set_xlabel(members[0].monitor.axis)
        axis.set_ylabel("leakage: SSIM")
    else:
        axis.set_xlabel("KiB per sample and step")
        axis.set_ylabel(members[0].monitor.axis)


def _position(group: Group, is_audited: bool) -> tuple[float, float]:
    monitored, leakage = group.monitored, group.leakage()
    value = group.monitor.shown(monitored.mean) if monitored else 0.0
    if is_audited and leakage is not None:
        return value, leakage.mean
    return group.step_bytes / 1024, value


def _point_label(group: Group) -> str:
    return group.method.removeprefix(group.settings["codec"]).strip()


def _line(group: Group) -> dict[str, Any]:
    monitored, leakage = group.monitored, group.leakage()
    return {
        "dataset": group.settings["dataset"],
        "setting": group.labels["setting"],
        "method": group.method,
        "figure": group.monitor.name,
        "value": monitored.mean if monitored else None,
        "leakage_ssim": leakage.mean if leakage else None,
        "step_bytes_per_sample": group.step_bytes,
    }
