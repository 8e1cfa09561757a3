"""How often cosine-to-consensus flags a client although nobody is malicious.

"3 sigma" does not mean 0.3 %: with few clients the median and the MAD are rough, and a
cosine to the consensus has one long tail, the longer the fewer directions the noise
has. So the rate is found by a bootstrap from the collected evidence: clients that share
one mean, each with the noise that its own number of steps leaves in it
(``step_noise.py``), are scored many times over. The rate is per verdict: at least one
honest client is flagged. It holds for clients whose data have the same distribution.
"""

import numpy as np
from numpy.typing import NDArray

from lightsplit.backdoors.detectors.cosine_scores import cosine_scores
from lightsplit.backdoors.step_noise import Noise
from lightsplit.errors import ConfigError
from lightsplit.seeding import numpy_generator

TRIALS = 1000
_CHUNK = 2**21  # values at a time

Floats = NDArray[np.float64]


class HonestScores:
    """The highest score of a field of honest clients, trial by trial.

    Args:
        vectors: of the clients (clients, values); only their mean is used.
        noise: of the steps that they are means of.
        clients: which client each vector is about.
        consensus, sides: as in ``cosine_scores``.
    """

    def __init__(
        self,
        vectors: Floats,
        noise: Noise,
        clients: list[int],
        *,
        consensus: str,
        sides: str,
    ) -> None:
        steps = np.array([noise.steps[client] for client in clients])
        rows = noise.of_one_step.numpy()
        common = vectors.mean(axis=0)
        generator = numpy_generator(0, "honest clients", len(clients))
        chunk = max(1, _CHUNK // vectors.size)
        self._highest = np.concatenate(
            [
                cosine_scores(
                    common + _draws(generator, rows, steps, min(chunk, TRIALS - start)),
                    consensus=consensus,
                    sides=sides,
                ).max(axis=-1)
                for start in range(0, TRIALS, chunk)
            ]
        )

    def rate_above(self, threshold: float) -> float:
        """Return the share of honest verdicts with a score above ``threshold``."""
        return float((self._highest > threshold).mean())

    def threshold_for(self, rate: float) -> float:
        """Return the threshold that a share ``rate`` of honest verdicts exceeds."""
        return float(np.quantile(self._highest, 1 - rate))


def check_rate(rate: float | None) -> None:
    """Refuse a rate of false alarms that no threshold can have."""
    if rate is not None and not 0 < rate < 1:
        raise ConfigError(f"false_alarm_rate must be between 0 and 1, got {rate}")


def _draws(
    generator: np.random.Generator,
    rows: Floats,
    steps: NDArray[np.int64],
    trials: int,
) -> Floats:
    """Return the noise in the mean of each client (trials, clients, values)."""
    weights = generator.standard_normal((trials, len(steps), len(rows)))
    weights /= np.sqrt(len(rows) * steps)[:, None]
    drawn: Floats = weights @ rows
    return drawn
