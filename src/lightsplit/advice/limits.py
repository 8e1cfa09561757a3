"""Limits: what a setting may leak and cost at most."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from lightsplit.errors import ConfigError
from lightsplit.reports.frontier import REIDENTIFICATION, Point


class Candidate(NamedTuple):
    """A setting of a search.

    Attributes:
        point: what it reaches and what it leaks.
        client_flops: operations of a client per sample, forward and backward.
    """

    point: Point
    client_flops: int


@dataclass(frozen=True)
class Limits:
    """The most that a setting may leak and cost; None is no limit.

    Attributes:
        reidentification: share of images that the worst attack names.
        ssim_gain: worst SSIM over that of the mean image of the class.
        client_flops: operations of a client per sample, forward and backward.
        accuracy_loss: how much worse than raw the task's figure may be; 0.01 is one
            point of accuracy.
    """

    reidentification: float = 0.05
    ssim_gain: float = 0.05
    client_flops: float | None = None
    accuracy_loss: float | None = None

    def __post_init__(self) -> None:
        _check("--max-reidentification", self.reidentification, most=1.0)
        _check("--max-ssim-gain", self.ssim_gain, most=2.0)
        _check("--max-client-flops", self.client_flops)
        _check("--max-accuracy-loss", self.accuracy_loss)

    def missed(self, candidate: Candidate) -> list[str]:
        """Return each limit that a setting does not meet, in words."""
        return [*self._leaks_missed(candidate.point), *self._costs_missed(candidate)]

    def excess(self, candidate: Candidate) -> float:
        """Return how many times its limit the worst leakage of a setting is."""
        point = candidate.point
        pairs = (
            (point.leak(REIDENTIFICATION), self.reidentification),
            (point.ssim_gain, self.ssim_gain),
        )
        shares = [math.inf if v is None else v / max(most, 1e-6) for v, most in pairs]
        return max(shares)

    def _leaks_missed(self, point: Point) -> list[str]:
        named, gain = point.leak(REIDENTIFICATION), point.ssim_gain
        found = []
        if named is None:
            found.append("re-identification was not measured")
        elif named > self.reidentification:
            found.append(f"{named:.1%} of the images are named")
        if gain is None:
            found.append("SSIM was not measured")
        elif gain > self.ssim_gain:
            found.append(f"SSIM is {gain:.3f} above the class mean")
        return found

    def _costs_missed(self, candidate: Candidate) -> list[str]:
        found = []
        if self.client_flops is not None and candidate.client_flops > self.client_flops:
            found.append(f"the client needs {candidate.client_flops:,} FLOPs a sample")
        if self.accuracy_loss is None:
            return found
        lost = candidate.point.over_raw
        monitor = candidate.point.group.monitor
        if lost is None:
            found.append("there is no raw run to compare with")
        elif -lost > self.accuracy_loss:
            found.append(f"{monitor.name} is {monitor.text(-lost)} below raw")
        return found


def _check(flag: str, value: float | None, most: float = math.inf) -> None:
    if value is None or (math.isfinite(value) and 0 <= value <= most):
        return
    span = "of 0 or more" if math.isinf(most) else f"from 0 to {most:g}"
    raise ConfigError(f"{flag} must be a number {span}, got {value:g}")
