"""Accuracy against leakage, one point per method, as large as its messages."""

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
from lightsplit.reports.groups import Group
from lightsplit.reports.tables import setting_text

_LARGEST = 420.0  # points², for the raw codec


def tradeoff(groups: Sequence[Group]) -> Picture | None:
    """Return the picture, against bytes alone where nothing was audited."""
    audited = [group for group in groups if group.leakage() is not None]
    chosen = audited or [g for g in groups if g.spread("test_accuracy") is not None]
    if not chosen:
        return None
    settings = list(by_setting(chosen).values())
    lines = [_line(group) for members in settings for group in members]
    if audited:
        title = "Privacy, utility and bytes"
        note = (
            "Right is more accurate, up leaks more: SSIM of the strongest attack that "
            "is not trivial. The area of a point is the bytes of a step."
        )
    else:
        title = "Utility and bytes"
        note = (
            "Accuracy against bytes of all messages per sample. Nothing was audited, "
            "so leakage is not in the picture: run lightsplit audit on these runs."
        )
    shown, note = first_panels(settings, note)
    return Picture(
        "tradeoff", title, note, lambda ink: _draw(shown, bool(audited), ink), lines
    )


def _draw(settings: list[list[Group]], is_audited: bool, ink: str) -> Figure:
    titles = [
        f"{members[0].settings['dataset']}: {setting_text(members[0].settings)}"
        for members in settings
    ]
    figure, axes = panels(titles, ink)
    for axis, members in zip(axes, settings, strict=True):
        _draw_panel(axis, members, is_audited, ink)
    legend(figure, axes[0], ink)
    return figure


def _draw_panel(axis: Axes, members: list[Group], is_audited: bool, ink: str) -> None:
    largest = max(group.step_bytes for group in members)
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
        axis.set_xlabel("test accuracy, %")
        axis.set_ylabel("leakage: SSIM")
    else:
        axis.set_xlabel("KiB per sample and step")
        axis.set_ylabel("test accuracy, %")


def _position(group: Group, is_audited: bool) -> tuple[float, float]:
    accuracy = group.spread("test_accuracy")
    percent = 100 * accuracy.mean if accuracy else 0.0
    leakage = group.leakage()
    if is_audited and leakage is not None:
        return percent, leakage.mean
    return group.step_bytes / 1024, percent


def _point_label(group: Group) -> str:
    return group.method.removeprefix(group.settings["codec"]).strip()


def _line(group: Group) -> dict[str, Any]:
    accuracy, leakage = group.spread("test_accuracy"), group.leakage()
    return {
        "dataset": group.settings["dataset"],
        "setting": setting_text(group.settings),
        "method": group.method,
        "test_accuracy": accuracy.mean if accuracy else None,
        "leakage_ssim": leakage.mean if leakage else None,
        "step_bytes_per_sample": group.step_bytes,
    }
