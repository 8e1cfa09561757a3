"""Groups of runs that differ only in the seed."""

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lightsplit.reports.monitored import Monitored
from lightsplit.reports.runs import Run
from lightsplit.results import attack_label, blind_guesses, main_ladder

STEP_KINDS = ("code", "output", "output_gradient", "code_gradient")
METHOD = ("codec", "output_codec", "wire", "objective")  # tables of the method
WATCHERS = ("detector", "guard", "inspector", "attack")  # tables without effect


class Spread(NamedTuple):
    """The mean and the standard deviation over seeds."""

    mean: float
    deviation: float
    seeds: int


@dataclass(frozen=True, eq=False)
class Group:
    """Runs of one experiment under several seeds.

    Attributes:
        runs: one for each seed.
        repeats: further runs with the same settings and seed as one of ``runs``; they
            do not count as seeds.
    """

    runs: tuple[Run, ...]
    repeats: tuple[Run, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """All settings; the seed is the first run's."""
        return self.runs[0].settings

    @property
    def labels(self) -> dict[str, str]:
        """The group in a few words."""
        return self.runs[0].labels

    @property
    def setting(self) -> str:
        """The settings that comparable groups share: all but method and seed."""
        tables = self.runs[0].tables
        kept = {k: v for k, v in tables.items() if k not in (*METHOD, *WATCHERS)}
        return json.dumps(_without_seed(kept), sort_keys=True)

    @property
    def method(self) -> str:
        """The codec and the objectives, with every option that tells variants apart."""
        return self.labels["method"]

    @property
    def step_bytes(self) -> float:
        """Payload of all messages of a step, per sample."""
        kinds = (*STEP_KINDS, "labels")
        return self.per_sample(*kinds)

    def per_sample(self, *kinds: str) -> float:
        """Return the bytes of the given kinds per training sample."""
        record = self.runs[0].record
        total = sum(record["bytes"].get(kind, 0) for kind in kinds)
        return float(total / max(record.get("samples", 0), 1))

    def spread(self, name: str) -> Spread | None:
        """Return mean and deviation of a figure of the records; None if none has it."""
        return spread(run.record.get(name) for run in self.runs)

    @property
    def monitor(self) -> Monitored:
        """The figure that its task is judged by."""
        return Monitored.of(self.runs[0].record)

    @property
    def monitored(self) -> Spread | None:
        """That figure at the end of training, over seeds."""
        return self.spread(self.monitor.key)

    @property
    def best_monitored(self) -> Spread | None:
        """The best value of that figure in training, over seeds."""
        return self.spread(f"best_{self.monitor.key}")

    def leakage(self, metric: str = "ssim") -> Spread | None:
        """Return the strongest attack's result over seeds; None without an audit."""
        return spread(_worst(run, metric) for run in self.runs)

    def guessed(self, metric: str, attack: str = "") -> Spread | None:
        """Return the best guess without any code over seeds, or that of one attack."""
        return spread(_best_guess(run, metric, attack) for run in self.runs)

    def attacked(self, attack: str, form: str, metric: str) -> Spread | None:
        """Return one attack's result over seeds; None if it was not run.

        An attack with options is a different attack, called ``name:option=…``.
        """
        return spread(
            entry["metrics"][metric]["mean"]
            for run in self.runs
            for entry in run.audit
            if (attack_label(entry), entry.get("form", "")) == (attack, form)
            and metric in entry["metrics"]
        )


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Return the groups in order of dataset, setting and method."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        key = json.dumps(_without_seed(run.tables), sort_keys=True)
        found.setdefault(key, []).append(run)
    return sorted(map(_make_group, found.values()), key=_order)


def _without_seed(tables: dict[str, Any]) -> dict[str, Any]:
    training = {
        key: value
        for key, value in tables["training"].items()
        if key not in ("seed", "device")
    }
    return {**tables, "training": training}


def _make_group(runs: Sequence[Run]) -> Group:
    """Keep one run per seed: the one with the most attacks."""
    kept: dict[Any, Run] = {}
    for run in runs:
        seed = run.settings.get("seed")
        if seed not in kept or len(run.audit) > len(kept[seed].audit):
            kept[seed] = run
    chosen = tuple(kept.values())
    return Group(chosen, tuple(run for run in runs if run not in chosen))


def spread(values: Iterable[float | None]) -> Spread | None:
    """Return mean and sample deviation of the finite values."""
    known = [v for v in values if v is not None and math.isfinite(v)]
    if not known:
        return None
    deviation = statistics.stdev(known) if len(known) > 1 else 0.0
    return Spread(statistics.fmean(known), deviation, len(known))


def raw_partner(group: Group, groups: Sequence[Group]) -> Group | None:
    """Return the raw run in the same setting; one without objectives if there is one.

    A defence on raw activations is no yardstick for the others.
    """
    found = [
        other
        for other in groups
        if other.settings["codec"] == "raw" and other.setting == group.setting
    ]
    plain = [other for other in found if not other.runs[0].tables.get("objective")]
    return next(iter([*plain, *found]), None)


def alone_partner(group: Group, groups: Sequence[Group]) -> Group | None:
    """Return the best runs without a server (codec none) in the same setting."""
    alone = [one for one in groups if _is_alone(one) and one.setting == group.setting]
    best: Group | None = None
    for one in alone:
        if best is None or _is_better(one, best):
            best = one
    return best


def _is_alone(group: Group) -> bool:
    return bool(group.settings["codec"] == "none")


def _is_better(group: Group, other: Group) -> bool | None:
    """Return whether a group is better than another; None if it cannot be said."""
    own, theirs = group.monitored, other.monitored
    if own is None or theirs is None:
        return None
    if group.monitor.is_higher_better:
        return own.mean > theirs.mean
    return own.mean < theirs.mean


def beats_alone(group: Group, groups: Sequence[Group]) -> bool | None:
    """Return whether a group is better than clients without the server.

    None for those themselves, and where nobody tried.
    """
    alone = alone_partner(group, groups)
    if alone is None or _is_alone(group):
        return None
    return _is_better(group, alone)


def _order(group: Group) -> tuple[Any, ...]:
    own = group.settings
    ranks = {
        "none": -1,
        "raw": 0,
        "lightsplit-f": 1,
        "lightsplit-l": 2,
        "learned-1x1": 3,
    }
    method = (ranks.get(own["codec"], 9), own["codec"], own["ratio"], own.get("wcc", 0))
    place = str(own.get("cut", ""))
    setting = (own["dataset"], own["alpha"], place, own["heads"], own["clients"])
    return (*setting, *method, own.get("hidden", 0), json.dumps(own, sort_keys=True))


def _worst(run: Run, metric: str) -> float | None:
    """Return the best reconstruction of any attack on the run's main ladder."""
    figures = [
        entry["metrics"][metric]["mean"]
        for entry in main_ladder(run.audit)
        if metric in entry["metrics"]
    ]
    return max(figures, default=None)


def _best_guess(run: Run, metric: str, attack: str) -> float | None:
    figures = [
        entry["metrics"][metric]["mean"]
        for entry in blind_guesses(run.audit)
        if metric in entry["metrics"] and attack in ("", entry["attack"])
    ]
    return max(figures, default=None)
