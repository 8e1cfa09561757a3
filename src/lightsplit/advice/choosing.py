"""The choice: the best setting within the limits, and what to say about it.

Clients that send nothing leak nothing through codes, so training without the server is
a candidate like any other. It is the advice wherever nothing that meets the limits does
better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lightsplit.advice.limits import Candidate, Limits
from lightsplit.reports import Run, group_runs
from lightsplit.reports.frontier import REIDENTIFICATION, points


@dataclass(frozen=True)
class Advice:
    """What a search found.

    Attributes:
        candidates: every setting of the search.
        limits: what a setting may leak and cost.
        chosen: the best setting within the limits; None if there is none.
    """

    candidates: tuple[Candidate, ...]
    limits: Limits
    chosen: Candidate | None

    @property
    def sent(self) -> list[Candidate]:
        """The settings with a server."""
        return [one for one in self.candidates if not one.point.is_alone]

    @property
    def sentences(self) -> list[str]:
        """What to say about it, the advice first."""
        if self.chosen is None:
            return [*self._nothing(), *self._caution()]
        if self.chosen.point.is_alone:
            return [*self._without_server(self.chosen), *self._caution()]
        return [*self._with_server(self.chosen), *self._caution()]

    def _with_server(self, chosen: Candidate) -> list[str]:
        point = chosen.point
        monitor = point.group.monitor
        words = [f"{monitor.name} {_figure(chosen)}"]
        words += _differences(chosen)
        return [
            f"Use {name(chosen)}.",
            f"It has {', '.join(words)}. {_leaks(chosen)} {_cost(chosen)}",
        ]

    def _without_server(self, chosen: Candidate) -> list[str]:
        own = f"{chosen.point.group.monitor.name} {_figure(chosen)}"
        said = [f"Train without the server: {name(chosen)}, {own}. It sends nothing."]
        within = [one for one in self.sent if not self.limits.missed(one)]
        if within:
            best = max(within, key=_rank)
            said.append(
                "No setting with a server that meets the limits does better. The best "
                f"is {name(best)} with {_figure(best)}. {_leaks(best)}"
            )
        else:
            said += ["No setting with a server meets the limits.", *self._too_strict()]
        if self.sent and all(_rank(one) <= _rank(chosen) for one in self.sent):
            said.append(
                "Every setting is below what the clients reach without the server, "
                "raw included: in this search the server is worth nothing."
            )
        return said

    def _nothing(self) -> list[str]:
        said = ["No setting of this search meets the limits."]
        if self.sent:
            near = min(self.sent, key=self.limits.excess)
            missed = "; ".join(self.limits.missed(near))
            said.append(f"The nearest is {name(near)}: {missed}.")
        said += self._too_strict()
        said.append(
            "Try fewer --bits, an objective such as conditional-entropy with a smaller "
            "budget, a deeper --cut or more epochs; or raise the limit."
        )
        return said

    def _too_strict(self) -> list[str]:
        """Return a sentence if a guess without any code is beyond the limit, too."""
        guesses = [one.point.guess(REIDENTIFICATION) or 0.0 for one in self.sent]
        least = min(guesses, default=0.0)
        if least < self.limits.reidentification:
            return []
        return [
            f"A guess that sees no code already names {least:.1%} of the images, as "
            "one in each class is nearest to the class mean: a lower limit needs a "
            "new search with more --images to tell apart."
        ]

    def _caution(self) -> list[str]:
        if any(len(one.point.group.runs) > 1 for one in self.candidates):
            return []
        return [
            "One seed: differences of a point may be luck. Repeat the search with "
            "--set seed=[0,1,2] before you rely on it."
        ]


def find_candidates(
    runs: Sequence[Run], client_flops: Mapping[Path, int]
) -> list[Candidate]:
    """Return the settings of finished runs, given the FLOPs of each run's folder."""
    return [
        Candidate(point, client_flops[point.group.runs[0].path])
        for point in points(group_runs(runs))
    ]


def advise(candidates: Sequence[Candidate], limits: Limits) -> Advice:
    """Return the best candidate within the limits; among equals what leaks less."""
    within = [one for one in candidates if not limits.missed(one)]
    chosen = max(within, key=_rank, default=None)
    return Advice(tuple(candidates), limits, chosen)


def name(candidate: Candidate) -> str:
    """Return a setting in a few words."""
    group = candidate.point.group
    place = group.settings.get("cut")
    return f"{group.method} at cut {place}" if place else group.method


def _rank(candidate: Candidate) -> tuple[float, float, float]:
    point = candidate.point
    leak = point.leak(REIDENTIFICATION) or 0.0
    return point.merit, -leak, -point.group.step_bytes


def _figure(candidate: Candidate) -> str:
    monitor, value = candidate.point.group.monitor, candidate.point.value
    if value is None:
        return "–"
    return monitor.text(value) + (" %" if monitor.is_accuracy else "")


def _differences(candidate: Candidate) -> list[str]:
    point, monitor = candidate.point, candidate.point.group.monitor
    unit = " points" if monitor.is_accuracy else ""
    pairs = (
        (point.over_raw, "raw"),
        (point.over_alone, "what the clients reach without the server"),
    )
    return [
        f"{monitor.text(abs(value))}{unit} {'above' if value >= 0 else 'below'} {what}"
        for value, what in pairs
        if value is not None
    ]


def _leaks(candidate: Candidate) -> str:
    point = candidate.point
    named, gain = point.leak(REIDENTIFICATION), point.ssim_gain
    words = []
    if named is not None:
        words.append(f"the worst attack names {named:.1%} of the images")
    if gain is not None:
        words.append(f"gets {gain:+.3f} SSIM over the class mean")
    text = " and ".join(words)
    said = f"{text[:1].upper()}{text[1:]}." if text else ""
    if point.bound is not None:
        said += (
            f" No attack on one code per sample can name more than {point.bound:.1%}."
        )
    return said.strip()


def _cost(candidate: Candidate) -> str:
    return (
        f"A step costs {candidate.point.group.step_bytes:,.0f} bytes a sample and the "
        f"client {candidate.client_flops:,} FLOPs."
    )
