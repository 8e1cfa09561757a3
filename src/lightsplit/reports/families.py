"""Backdoor runs that differ in one factor at a time, as the paper's do.

    groups ──► families: all settings alike but codec and factors ──► base of each

A family's base has of each factor the value that most of its groups have.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lightsplit.reports.groups import Group
from lightsplit.reports.tables import schedule_text

FACTORS = {
    "alpha": "α (Dirichlet)",
    "clients": "n (clients)",
    "malicious": "μ (malicious share)",
    "poison_ratio": "p (poison ratio)",
}
PAPER_BASE = {"alpha": 1e7, "clients": 10, "malicious": 0.1, "poison_ratio": 0.3}
_FREE = (
    *FACTORS,
    *("codec", "ratio", "projection", "scale", "hidden", "wcc"),
    *("detector", "seed", "device"),
)


@dataclass(frozen=True)
class Family:
    """Groups that differ in codec and factors only."""

    groups: tuple[Group, ...]
    base: dict[str, float]

    @property
    def is_poisoned(self) -> bool:
        """Say whether anybody plants anything in its runs."""
        return bool(self.groups[0].settings.get("trigger"))

    @property
    def title(self) -> str:
        """Where and for how long its runs were trained."""
        own = self.groups[0].settings
        words = [own["cut"], own["heads"], own.get("trigger") or "nobody malicious"]
        return f"{own['dataset']}: {' · '.join(words)}, {schedule_text(own)}"

    def changed(self, group: Group) -> tuple[str, ...]:
        """Return the factors in which ``group`` differs from the base."""
        own = group.settings
        return tuple(name for name in FACTORS if own[name] != self.base[name])

    def along(self, factor: str) -> list[Group]:
        """Return the groups in which nothing but ``factor`` differs from the base."""
        return [group for group in self.groups if set(self.changed(group)) <= {factor}]

    def heading(self, group: Group) -> tuple[str, str]:
        """Return what ``group`` changes, and to which value."""
        own, changed = group.settings, self.changed(group)
        if not changed:
            texts = [f"{FACTORS[n][0]}={factor_text(n, own[n])}" for n in FACTORS]
            return "baseline", ", ".join(texts)
        texts = [factor_text(name, own[name]) for name in changed]
        return ", ".join(FACTORS[name] for name in changed), ", ".join(texts)

    def rows(self) -> list[list[Group]]:
        """Return the groups of each combination of factors, the base first."""
        found: dict[tuple[float, ...], list[Group]] = {}
        for group in self.groups:
            place = tuple(group.settings[name] for name in FACTORS)
            found.setdefault(place, []).append(group)
        return sorted(found.values(), key=lambda members: self._order(members[0]))

    def _order(self, group: Group) -> tuple[Any, ...]:
        changed = self.changed(group)
        places = [list(FACTORS).index(name) for name in changed]
        values = [factor_order(name, group.settings[name]) for name in FACTORS]
        return len(changed), places, values


def families(groups: Sequence[Group]) -> list[Family]:
    """Return the groups with a trigger or a detector, by what they have in common."""
    found: dict[str, list[Group]] = {}
    for group in groups:
        own = group.settings
        if own.get("trigger") or own.get("detector"):
            key = {name: value for name, value in own.items() if name not in _FREE}
            found.setdefault(json.dumps(key, sort_keys=True), []).append(group)
    return [Family(tuple(members), _base(members)) for members in found.values()]


def factor_text(factor: str, value: float) -> str:
    """Return a factor's value for people."""
    return "IID" if factor == "alpha" and not value else f"{value:g}"


def factor_order(factor: str, value: float) -> float:
    """Return what a factor's values are sorted by: the most alike clients last."""
    return float("inf") if factor == "alpha" and not value else value


def _base(groups: Sequence[Group]) -> dict[str, float]:
    """Return the most frequent value of each factor; of several, the paper's."""
    base: dict[str, float] = {}
    for name, papers in PAPER_BASE.items():
        counts = Counter(group.settings[name] for group in groups)
        base[name] = max(counts, key=lambda v: (counts[v], v == papers))
    return base
