"""The paper's main table, assembled from runs of several sweeps.

    utility   best accuracy at cut l2 with shared heads, over raw: four IID columns, and
              the mean over the datasets with skewed labels
    attacks   SDAR's SSIM (U-shape, level 4), FORA's LPIPS, UnSplit's foreground MSE on
              MNIST and Fashion-MNIST (cut 2), as published, over raw

Raw rows have the figures themselves. The mean over skewed datasets is the ratio of mean
accuracies, as in the paper, over the datasets that both methods were run on.
"""

from collections.abc import Callable, Sequence
from typing import Any

from lightsplit.reports.groups import Group, Spread
from lightsplit.reports.paper import LIFTED_WIDTHS, read_figures, value_beside
from lightsplit.reports.tables import Table, Value

NAME = "main"
DATASETS = ("cifar10", "cifar100", "fashion-mnist", "gtsrb")
_NOTE = (
    "Raw: accuracy in %, or the attack's figure. Other rows: change against raw in %. "
    "Cut l2, shared heads, 10 clients, λ = 0; attacks as published. The skewed mean "
    "covers the datasets that were run with both methods (the paper: all four)."
)
Method = tuple[str, float]
Figures = dict[Method, dict[str, float]]


def main_table(groups: Sequence[Group]) -> Table | None:
    """Return the main table; None if there is no raw run to compare with."""
    found = _found(groups)
    raw = found.get(("raw", 1.0))
    if raw is None or len(found) < 2:
        return None
    published = _published()
    columns = [
        name for name in _columns() if any(name in own for own in found.values())
    ]
    rows, lines = [], []
    for method in sorted(found, key=lambda method: (method[0] != "raw", *method)):
        values = []
        for column in columns:
            ours = _change(column, found[method], raw, is_raw=method[0] == "raw")
            paper = published.get((*method, column))
            values.append(value_beside(_spread(ours), paper))
            lines.append(_line(method, column, ours, paper))
        rows.append((Value(method[0]), Value(f"{method[1]:g}x", method[1]), *values))
    title = "Utility and attacks against raw (the paper's main table)"
    return Table(NAME, title, _NOTE, ("codec", "ratio", *columns), rows, lines)


def _columns() -> dict[str, Callable[[Group], float | None]]:
    """Return the columns whose figure belongs to one group."""
    return {
        **{name: _accuracy(name, is_skewed=False) for name in DATASETS},
        "skewed_mean": lambda _group: None,
        "sdar_ssim": _attack("sdar", "ssim", cut="4", topology="u"),
        "fora_lpips": _attack("fora", "lpips", model="mobilenet"),
        "unsplit_mnist": _attack("unsplit", "mse_foreground", dataset="mnist", cut="2"),
        "unsplit_fashion": _attack(
            "unsplit", "mse_foreground", dataset="fashion-mnist", cut="2"
        ),
    }


def _found(groups: Sequence[Group]) -> Figures:
    """Return the figures of each method by column; a skewed one by its dataset."""
    found: Figures = {}
    skewed = {f"skewed {name}": _accuracy(name, is_skewed=True) for name in DATASETS}
    for group in groups:
        if not _belongs(group):
            continue
        method = (group.settings["codec"], float(group.settings["ratio"]))
        for column, read in {**_columns(), **skewed}.items():
            figure = read(group)
            if figure is not None:
                found.setdefault(method, {})[column] = figure
    for own in found.values():
        if any(column.startswith("skewed ") for column in own):
            own["skewed_mean"] = 0.0  # its value depends on raw's datasets
    return found


def _belongs(group: Group) -> bool:
    own = group.settings
    if own.get("trigger") or own.get("hijack") or own.get("wcc", 0):
        return False
    width = LIFTED_WIDTHS.get(own["dataset"], 128)
    return bool(own["codec"] != "lightsplit-l" or own["hidden"] == width)


def _accuracy(dataset: str, *, is_skewed: bool) -> Callable[[Group], float | None]:
    alpha = (0.5 if dataset == "cifar100" else 0.1) if is_skewed else 0
    wanted = {
        "dataset": dataset,
        "alpha": alpha,
        "cut": "l2",
        "heads": "shared",
        "clients": 10,
        "topology": "u",
    }

    def read(group: Group) -> float | None:
        best = group.spread("best_test_accuracy") if _has(group, wanted) else None
        return None if best is None else 100 * best.mean

    return read


def _attack(name: str, metric: str, **wanted: Any) -> Callable[[Group], float | None]:
    def read(group: Group) -> float | None:
        if not _has(group, wanted):
            return None
        result = group.attacked(name, "published", metric)
        return None if result is None else result.mean

    return read


def _has(group: Group, wanted: dict[str, Any]) -> bool:
    return all(group.settings.get(name) == value for name, value in wanted.items())


def _change(
    column: str, own: dict[str, float], raw: dict[str, float], *, is_raw: bool
) -> float | None:
    """Return the figure of raw, or the change of another method against it in %."""
    names = [column]
    if column == "skewed_mean":
        names = [name for name in own if name.startswith("skewed ") and name in raw]
    mine, base = (sum(side.get(name, 0.0) for name in names) for side in (own, raw))
    if not mine or not base:
        return None
    if is_raw:
        return 1.0 if column.startswith("unsplit") else mine / len(names)
    return 100 * (mine / base - 1)


def _published() -> dict[tuple[str, float, str], float]:
    return {
        (line["codec"], line["ratio"], line["metric"]): line["value"]
        for line in read_figures()
        if line["table"] == NAME
    }


def _spread(value: float | None) -> Spread | None:
    return None if value is None else Spread(value, 0.0, 1)


def _line(
    method: Method, column: str, ours: float | None, paper: float | None
) -> dict[str, Any]:
    return {
        "codec": method[0],
        "ratio": method[1],
        "column": column,
        "ours": None if ours is None else round(ours, 4),
        "paper": paper,
    }
