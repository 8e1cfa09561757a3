"""The frontier: how good each setting is, against how much of the samples it leaks.

    audited groups ──points──► Point (figure, worst leakage, bytes, what raw and the
                               clients alone reach)

The leakage of a setting is the worst figure of its ladder. Two yardsticks belong to
every point: what the clients reach without the server (codec none), and what a guess
without any code gets (the trivial attackers).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lightsplit.reports.groups import Group, alone_partner, raw_partner

SSIM, REIDENTIFICATION = "ssim", "reidentification"
LEAKS = (SSIM, REIDENTIFICATION)
CLASS_MEAN = "class-mean"


@dataclass(frozen=True, eq=False)
class Point:
    """One setting of the frontier.

    Attributes:
        group: the runs of the setting.
        raw: the runs with raw activations in the same setting, if there are any.
        alone: the runs without a server in the same setting, if there are any.
    """

    group: Group
    raw: Group | None = None
    alone: Group | None = None

    @property
    def method(self) -> str:
        """The codec and the objectives."""
        return self.group.method

    @property
    def is_alone(self) -> bool:
        """Whether nothing is sent: the clients without the server."""
        return str(self.group.settings["codec"]) == "none"

    @property
    def value(self) -> float | None:
        """The figure that the task is judged by, at the end of training."""
        return _value(self.group)

    @cached_property
    def merit(self) -> float:
        """The same figure, so that more is always better."""
        value = self.value
        if value is None:
            return float("-inf")
        return value if self.group.monitor.is_higher_better else -value

    @property
    def over_raw(self) -> float | None:
        """How much better than raw it is; negative if worse."""
        return self._better_than(self.raw)

    @property
    def over_alone(self) -> float | None:
        """How much better than the clients without the server it is."""
        return None if self.is_alone else self._better_than(self.alone)

    @property
    def is_ours(self) -> bool:
        """Whether the codec is one of LightSplit's own."""
        return str(self.group.settings["codec"]).startswith("lightsplit")

    @property
    def client_flops(self) -> int | None:
        """Operations of a client per sample of a training step."""
        return self._client_cost("flops")

    @property
    def client_parameters(self) -> int | None:
        """Parameters of a client."""
        return self._client_cost("parameters")

    def _client_cost(self, name: str) -> int | None:
        found: int | None = (self.group.runs[0].record.get("client_cost") or {}).get(
            name
        )
        return found

    def leak(self, metric: str) -> float | None:
        """Return the worst figure of the ladder; 0 where nothing was sent."""
        if self.is_alone:
            return 0.0
        found = self.group.leakage(metric)
        return None if found is None else found.mean

    def guess(self, metric: str) -> float | None:
        """Return what the best trivial attacker gets that sees no code."""
        found = self.group.guessed(metric)
        return None if found is None else found.mean

    @property
    def class_mean(self) -> float | None:
        """The SSIM of the mean image of the right class."""
        found = self.group.guessed(SSIM, CLASS_MEAN)
        return None if found is None else found.mean

    @property
    def ssim_gain(self) -> float | None:
        """The worst SSIM over that of the class mean; 0 where nothing was sent."""
        if self.is_alone:
            return 0.0
        worst, usual = self.leak(SSIM), self.class_mean
        return None if worst is None or usual is None else worst - usual

    @property
    def bound(self) -> float | None:
        """Distinct codes over samples, which no attack on one code each can beat."""
        certificate = self.group.runs[0].record.get("certificate") or {}
        found: float | None = certificate.get("reidentification_bound")
        return found

    def line(self) -> dict[str, Any]:
        """Return the figures of the point for CSV and JSON."""
        own = self.group
        return {
            "dataset": own.settings["dataset"],
            "setting": own.labels["setting"],
            "schedule": own.labels["schedule"],
            "method": own.method,
            "seeds": len(own.runs),
            "figure": own.monitor.name,
            "value": self.value,
            "over_raw": self.over_raw,
            "over_alone": self.over_alone,
            "leakage_ssim": self.leak(SSIM),
            "ssim_gain": self.ssim_gain,
            "reidentification": self.leak(REIDENTIFICATION),
            "trivial_ssim": self.guess(SSIM),
            "trivial_reidentification": self.guess(REIDENTIFICATION),
            "reidentification_bound": self.bound,
            "step_bytes_per_sample": own.step_bytes,
            "code_bytes_per_sample": own.per_sample("code"),
            "client_flops": self.client_flops,
            "client_parameters": self.client_parameters,
            "is_ours": self.is_ours,
            "is_on_frontier": False,
        }

    def _better_than(self, other: Group | None) -> float | None:
        own, theirs = self.value, _value(other)
        if own is None or theirs is None:
            return None
        return own - theirs if self.group.monitor.is_higher_better else theirs - own


def points(groups: Sequence[Group]) -> list[Point]:
    """Return a point for each group that was audited or sends nothing."""
    found = [
        Point(group, raw_partner(group, groups), alone_partner(group, groups))
        for group in groups
        if group.monitored is not None
    ]
    return [point for point in found if point.is_alone or leaks(point)]


def leaks(point: Point) -> list[str]:
    """Return the metrics of leakage that were measured for a point."""
    return [metric for metric in LEAKS if point.group.leakage(metric) is not None]


def pareto(found: Sequence[Point], metric: str) -> list[Point]:
    """Return the points that no other one beats in both, from least leakage to most."""
    best = float("-inf")
    kept = []
    measured = [point for point in found if point.leak(metric) is not None]
    for point in sorted(measured, key=lambda p: (p.leak(metric) or 0.0, -p.merit)):
        if point.merit > best:
            best = point.merit
            kept.append(point)
    return kept


def frontier_lines(found: Sequence[Point]) -> list[dict[str, Any]]:
    """Return the figures of all points; those that none beats are marked as such.

    Settings that send codes are compared with each other: the clients alone leak
    nothing, and where they are also better they would hide what remains to choose from.
    """
    lines = []
    for point in found:
        rivals = [p for p in found if p.group.setting == point.group.setting]
        rivals = [p for p in rivals if p.is_alone == point.is_alone]
        marked = any(point in pareto(rivals, metric) for metric in LEAKS)
        lines.append({**point.line(), "is_on_frontier": marked})
    return lines


def _value(group: Group | None) -> float | None:
    found = group.monitored if group else None
    return None if found is None else found.mean
