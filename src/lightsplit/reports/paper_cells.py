"""The figure of a group of runs in a cell of one of the paper's tables."""

from collections.abc import Callable, Sequence

from lightsplit.reports.groups import Group, Spread, raw_partner, spread
from lightsplit.reports.paper_shapes import Shape

Groups = Sequence[Group]


def cell_figure(shape: Shape, group: Group, groups: Groups) -> Spread | None:
    """Return the table's figure of a group, in the paper's unit."""
    if shape.attack:
        return _attacked(shape, group, groups)
    return _FIGURES[shape.metric](group, groups)


def _best(group: Group, _groups: Groups) -> Spread | None:
    return scaled(group.spread("best_test_accuracy"), 100.0)


def _two_messages(group: Group, _groups: Groups) -> Spread | None:
    per_sample = group.per_sample("code", "code_gradient")
    return Spread(per_sample * 100 * 50_000 / 2**30, 0.0, 1)


def _relative_to_raw(group: Group, groups: Groups) -> Spread | None:
    """Return the change of accuracy against raw in %; the accuracy of raw itself."""
    own, base = _best(group, groups), _best_of_raw(group, groups)
    if own is None or _is_raw(group):
        return own
    if base is None:
        return None
    loss = 100 * (own.mean / base.mean - 1)
    return Spread(loss, 100 * own.deviation / base.mean, own.seeds)


def _above_raw(group: Group, groups: Groups) -> Spread | None:
    own, base = _best(group, groups), _best_of_raw(group, groups)
    if own is None or base is None:
        return None
    return Spread(own.mean - base.mean, own.deviation, own.seeds)


def _over_shared(group: Group, groups: Groups) -> Spread | None:
    """Return the best accuracy over that of the same run with shared heads."""
    wanted = _apart_from_heads(group)
    for other in groups:
        if other.settings["heads"] == "shared" and _apart_from_heads(other) == wanted:
            base = _best(other, groups)
            own = _best(group, groups)
            return scaled(own, 1 / base.mean) if base and base.mean else None
    return None


def _apart_from_heads(group: Group) -> dict[str, object]:
    # The server's statistics follow the heads unless the user says otherwise.
    left_out = ("heads", "seed", "statistics")
    return {k: v for k, v in group.settings.items() if k not in left_out}


def _lift_parameters(group: Group, _groups: Groups) -> Spread | None:
    return scaled(spread([group.runs[0].record["parameters"]["decoder"]]), 1e-6)


def _foreground_ratio(group: Group, groups: Groups) -> Spread | None:
    """Return UnSplit's foreground MSE, published form, relative to that on raw."""
    raw = raw_partner(group, groups)
    base = raw.attacked("unsplit", "published", "mse_foreground") if raw else None
    own = group.attacked("unsplit", "published", "mse_foreground")
    return scaled(own, 1 / base.mean) if base and base.mean else None


def _attacked(shape: Shape, group: Group, groups: Groups) -> Spread | None:
    """Return an attack's figure, published form, or its change against raw in %."""
    metric = shape.metric.removesuffix("_change")
    own = group.attacked(shape.attack, "published", metric)
    if metric == shape.metric or own is None:
        return own
    raw = raw_partner(group, groups)
    base = raw.attacked(shape.attack, "published", metric) if raw else None
    if base is None or not base.mean or _is_raw(group):
        return None
    change = 100 * (own.mean / base.mean - 1)
    return Spread(change, 100 * own.deviation / abs(base.mean), own.seeds)


def scaled(found: Spread | None, factor: float) -> Spread | None:
    """Return a spread in another unit."""
    if found is None:
        return None
    return Spread(found.mean * factor, found.deviation * factor, found.seeds)


def _best_of_raw(group: Group, groups: Groups) -> Spread | None:
    raw = raw_partner(group, groups)
    return _best(raw, groups) if raw else None


def _is_raw(group: Group) -> bool:
    return bool(group.settings["codec"] == "raw")


_FIGURES: dict[str, Callable[[Group, Groups], Spread | None]] = {
    "best_test_accuracy": _best,
    "two_message_gib": _two_messages,
    "relative_to_raw": _relative_to_raw,
    "delta_raw": _above_raw,
    "private_over_shared": _over_shared,
    "lift_parameters": _lift_parameters,
    "mse_foreground_ratio": _foreground_ratio,
}
