"""Families of backdoor runs that change one factor at a time, as the paper does.

    groups ──► families: all settings alike but codec and factors ──► base of each

The base of a family has the most frequent value of each factor among its groups.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lightsplit.reports.groups import METHOD, Group
from lightsplit.reports.runs import Run
from lightsplit.results.settings import flatten

FACTORS = {
    "alpha": "α (Dirichlet)",
    "clients": "n (clients)",
    "malicious": "μ (malicious share)",
    "poison_ratio": "p (poison ratio)",
}
PAPER_BASE = {"alpha": 1e7, "clients": 10, "malicious": 0.1, "poison_ratio": 0.3}
_FREE_TABLES = (*METHOD, "detector", "attack")
_FREE = (*FACTORS, "seed", "device")


@dataclass(frozen=True)
class Family:
    """Groups that differ only in the codec and in factors."""

    groups: tuple[Group, ...]
    base: dict[str, float]

    @property
    def is_poisoned(self) -> bool:
        """Return whether any of its runs has malicious clients."""
        return bool(self.groups[0].settings.get("trigger"))

    @property
    def title(self) -> str:
        """The task, the setting and the schedule of its runs."""
        own, labels = self.groups[0].settings, self.groups[0].labels
        words = [own.get("cut", ""), own["heads"]]
        words.append(own.get("trigger") or "nobody malicious")
        return f"{labels['task']}: {' · '.join(words)}, {labels['schedule']}"

    def changed(self, group: Group) -> tuple[str, ...]:
        """Return the factors in which ``group`` differs from the base."""
        own = group.settings
        return tuple(name for name in FACTORS if own[name] != self.base[name])

    def along(self, factor: str) -> list[Group]:
        """Return the groups that differ from the base in ``factor`` only."""
        return [group for group in self.groups if set(self.changed(group)) <= {factor}]

    def heading(self, group: Group) -> tuple[str, str]:
        """Return the factor that ``group`` changes, and its value there."""
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
    """Return the families of all groups that have a trigger or a detector."""
    found: dict[str, list[Group]] = {}
    for group in groups:
        own = group.settings
        if own.get("trigger") or own.get("detector"):
            found.setdefault(_common(group.runs[0]), []).append(group)
    return [Family(tuple(members), _base(members)) for members in found.values()]


def _common(run: Run) -> str:
    """Return the settings that all runs of a family share."""
    fixed = {k: v for k, v in run.tables.items() if k not in _FREE_TABLES}
    own = {name: v for name, v in flatten(fixed).items() if name not in _FREE}
    return json.dumps(own, sort_keys=True)


def factor_text(factor: str, value: float) -> str:
    """Return a factor's value in readable form."""
    return "IID" if factor == "alpha" and not value else f"{value:g}"


def factor_order(factor: str, value: float) -> float:
    """Return the sort key of a factor's value; the most similar clients come last."""
    return float("inf") if factor == "alpha" and not value else value


def _base(groups: Sequence[Group]) -> dict[str, float]:
    """Return the most frequent value of each factor; the paper's breaks a tie."""
    base: dict[str, float] = {}
    for name, papers in PAPER_BASE.items():
        counts = Counter(group.settings[name] for group in groups)
        base[name] = max(counts, key=lambda v: (counts[v], v == papers))
    return base
