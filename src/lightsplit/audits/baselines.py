"""Trivial attackers as baselines: does an attack beat those that know as much?

    per-image scores of an attack ─┐
                                   ├─► mean difference, resampled over images ─► lead
    per-image scores of a baseline ┘

The same images are compared, so the interval is that of the difference and far narrower
than those of the two means. A baseline that needs pairs judges attacks that have pairs
or could make them; all other baselines judge every attack.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from torch import Tensor

from lightsplit.seeding import numpy_generator

TELLING = ("ssim", "correlation")  # in one of them an attack must beat all baselines
RESAMPLES = 2000
ALPHA = 0.025  # one-sided; divided by the number of chances to win by luck
PAIRS = "pairs"
AS_GOOD_AS_PAIRS = ({PAIRS}, {"linked", "auxiliary"}, {"client", "auxiliary"})


class Lead(NamedTuple):
    """The lead of an attack over its strongest baseline, in one metric.

    Attributes:
        over: the name of the baseline.
        mean: of the differences between images' scores.
        low: a lower bound of the mean, by a paired bootstrap.
    """

    over: str
    mean: float
    low: float


@dataclass
class Baselines:
    """The scores of the trivial attackers, image by image.

    Attributes:
        seed: of the bootstrap.
        telling: metrics in one of which an attack must beat all baselines.
    """

    seed: int = 0
    telling: tuple[str, ...] = TELLING
    _known: dict[str, tuple[frozenset[str], dict[str, Tensor]]] = field(
        default_factory=dict
    )

    def add(
        self, name: str, needs: Sequence[str], values: Mapping[str, Tensor]
    ) -> None:
        """Remember the scores of a trivial attacker."""
        telling = {metric: values[metric] for metric in self.telling}
        self._known[name] = frozenset(needs), telling

    def leads(
        self, needs: Sequence[str], values: Mapping[str, Tensor]
    ) -> dict[str, Lead]:
        """Return for each telling metric the smallest lead over a fair baseline."""
        has_pairs = any(enough <= set(needs) for enough in AS_GOOD_AS_PAIRS)
        fair = {
            name: scores
            for name, (known, scores) in self._known.items()
            if PAIRS not in known or has_pairs
        }
        return {
            metric: min(
                (
                    self._lead(name, values[metric] - scores[metric])
                    for name, scores in fair.items()
                ),
                key=lambda lead: lead.low,
            )
            for metric in self.telling
            if fair
        }

    def _lead(self, name: str, differences: Tensor) -> Lead:
        numbers = differences.detach().cpu().double().numpy()
        generator = numpy_generator(self.seed, "lead", name)
        counts = generator.multinomial(
            len(numbers), np.full(len(numbers), 1 / len(numbers)), size=RESAMPLES
        )
        share = ALPHA / len(self.telling)
        low = float(np.quantile(counts @ numbers / len(numbers), share))
        return Lead(name, float(numbers.mean()), low)


def is_ahead(leads: Mapping[str, Lead]) -> bool:
    """Return whether an attack beats all its baselines in a telling metric."""
    return any(lead.low > 0 for lead in leads.values())
