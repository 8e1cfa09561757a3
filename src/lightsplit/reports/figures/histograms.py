"""The number of samples of each class that every client holds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lightsplit.extras import require
from lightsplit.reports.figures.drawing import Picture, colour, first_panels, panels
from lightsplit.reports.groups import Group
from lightsplit.reports.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def histograms(groups: Sequence[Group]) -> Picture | None:
    """Return one panel per partition; None if no record has a histogram."""
    found: dict[tuple[Any, ...], Run] = {}
    for group in groups:
        run, own = group.runs[0], group.settings
        if run.record.get("label_histogram"):
            key = (own["dataset"], own["clients"], own["alpha"], own["train_limit"])
            found.setdefault(key, run)
    runs = list(found.values())
    if not runs:
        return None
    lines = [
        {**_partition(run), "client": client, "class": label, "samples": count}
        for run in runs
        for client, counts in enumerate(run.record["label_histogram"])
        for label, count in enumerate(counts)
    ]
    note = "One row per client, one column per class; darker blue is more samples."
    shown, note = first_panels(runs, note)
    return Picture(
        "histograms", "Who holds what", note, lambda ink: _draw(shown, ink), lines
    )


def _draw(runs: list[Run], ink: str) -> "Figure":
    figure, axes = panels([_title(run) for run in runs], ink)
    # From transparent to blue, so that empty cells are the page's own colour.
    blue = colour("lightsplit-f")
    colours = require("matplotlib.colors", extra="reports")
    ticker = require("matplotlib.ticker", extra="reports")
    shades = colours.LinearSegmentedColormap.from_list("samples", [blue + "0a", blue])
    for axis, run in zip(axes, runs, strict=True):
        counts = np.array(run.record["label_histogram"])
        clients, classes = (np.arange(n + 1) - 0.5 for n in counts.shape)
        mesh = axis.pcolormesh(classes, clients, counts, cmap=shades, vmin=0)
        axis.invert_yaxis()
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_locator(ticker.MaxNLocator(integer=True))
        axis.grid(visible=False)
        axis.set_xlabel("class")
        axis.set_ylabel("client")
        bar = figure.colorbar(mesh, ax=axis, shrink=0.9)
        bar.ax.tick_params(colors=ink, labelsize=7, length=2)
        bar.outline.set_visible(False)
    return figure


def _partition(run: Run) -> dict[str, Any]:
    names = ("dataset", "clients", "alpha", "seed")
    return {name: run.settings[name] for name in names}


def _title(run: Run) -> str:
    own = run.settings
    skew = f"Dirichlet {own['alpha']:g}" if own["alpha"] else "IID"
    return f"{own['dataset']}: n={own['clients']} · {skew} · seed {own['seed']}"
