"""Runs that differ in nothing but the seed, taken together."""

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lightsplit.reports.runs import Run

STEP_KINDS = ("code", "output", "output_gradient", "code_gradient")
SETTING = (
    *("dataset", "model", "cut", "topology", "heads", "clients", "alpha"),
    *("trigger", "malicious", "malicious_clients", "poison_ratio"),
)
SCHEDULE = ("epochs", "max_steps", "train_limit", "test_limit", "batch_size", "lr")


class Spread(NamedTuple):
    """The mean over seeds, and how far they lie apart."""

    mean: float
    deviation: float
    seeds: int


@dataclass(frozen=True, eq=False)
class Group:
    """Runs of one experiment under several seeds.

    Attributes:
        runs: one for each seed.
        repeats: others with the same settings and the same seed as one of them: the
            same run once more, which is no second seed.
    """

    runs: tuple[Run, ...]
    repeats: tuple[Run, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """All settings; the seed is the first run's."""
        return self.runs[0].settings

    @property
    def setting(self) -> tuple[Any, ...]:
        """Everything that makes groups comparable: all but codec and its options."""
        names = (*SETTING, *SCHEDULE)
        return tuple(self.settings.get(name) for name in names)

    @property
    def method(self) -> str:
        """The codec with all that people tell its variants apart by."""
        own = self.settings
        words = [own["codec"]]
        words += [f"{own['ratio']:g}x"] if own["codec"] != "raw" else []
        words += (
            [own["projection"]] if own.get("projection") not in ("", "haar") else []
        )
        words += ["jl"] if own.get("scale") == "jl" else []
        words += [f"λ={own['wcc']:g}"] if own.get("wcc") else []
        return " ".join(words)

    @property
    def step_bytes(self) -> float:
        """Payload of all messages of a step, per sample."""
        kinds = (*STEP_KINDS, "labels")
        return self.per_sample(*kinds)

    def per_sample(self, *kinds: str) -> float:
        """Return the bytes of some kinds over the samples trained on."""
        record = self.runs[0].record
        total = sum(record["bytes"].get(kind, 0) for kind in kinds)
        return float(total / max(record.get("samples", 0), 1))

    def spread(self, name: str) -> Spread | None:
        """Return mean and deviation of a figure of the record; None without any."""
        return spread(run.record.get(name) for run in self.runs)

    def leakage(self, metric: str = "ssim") -> Spread | None:
        """Return what the strongest attack reached, over seeds; None without audit."""
        return spread(_worst(run, metric) for run in self.runs)

    def attacked(self, attack: str, form: str, metric: str) -> Spread | None:
        """Return what one attack reached, over seeds; None where it was not run."""
        return spread(
            entry["metrics"][metric]["mean"]
            for run in self.runs
            for entry in run.audit
            if (entry["attack"], entry.get("form", "")) == (attack, form)
            and metric in entry["metrics"]
        )


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Return the groups in order of dataset, setting and method."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        key = {k: v for k, v in run.settings.items() if k not in ("seed", "device")}
        found.setdefault(json.dumps(key, sort_keys=True), []).append(run)
    return sorted(map(_make_group, found.values()), key=_order)


def _make_group(runs: Sequence[Run]) -> Group:
    """Keep one run of each seed, the one that was attacked most."""
    kept: dict[Any, Run] = {}
    for run in runs:
        seed = run.settings.get("seed")
        if seed not in kept or len(run.audit) > len(kept[seed].audit):
            kept[seed] = run
    chosen = tuple(kept.values())
    return Group(chosen, tuple(run for run in runs if run not in chosen))


def spread(values: Iterable[float | None]) -> Spread | None:
    """Return mean and sample deviation of what is a finite number."""
    known = [v for v in values if v is not None and math.isfinite(v)]
    if not known:
        return None
    deviation = statistics.stdev(known) if len(known) > 1 else 0.0
    return Spread(statistics.fmean(known), deviation, len(known))


def raw_partner(group: Group, groups: Sequence[Group]) -> Group | None:
    """Return the raw run in the same setting."""
    for other in groups:
        if other.settings["codec"] == "raw" and other.setting == group.setting:
            return other
    return None


def _order(group: Group) -> tuple[Any, ...]:
    own = group.settings
    ranks = {"raw": 0, "lightsplit-f": 1, "lightsplit-l": 2, "learned-1x1": 3}
    method = (ranks.get(own["codec"], 9), own["codec"], own["ratio"], own.get("wcc", 0))
    setting = (own["dataset"], own["alpha"], own["cut"], own["heads"], own["clients"])
    return (*setting, *method, own.get("hidden", 0), json.dumps(own, sort_keys=True))


def _worst(run: Run, metric: str) -> float | None:
    """Return the best reconstruction of any attack that is not trivial."""
    figures = [
        entry["metrics"][metric]["mean"]
        for entry in run.audit
        if entry.get("kind") not in ("trivial", "labels") and metric in entry["metrics"]
    ]
    return max(figures, default=None)
