"""The stated rate of false alarms is the one that honest clients have."""

import numpy as np
import pytest
import torch

from lightsplit.backdoors.detectors import calibration
from lightsplit.backdoors.detectors.calibration import HonestScores, check_rate
from lightsplit.backdoors.detectors.cosine_scores import cosine_scores
from lightsplit.backdoors.step_noise import StepNoise
from lightsplit.errors import ConfigError

pytestmark = pytest.mark.slow

SIZE, FIELDS = 40, 100
FORMS = [("mean", "two"), ("mean", "one"), ("median", "two"), ("median", "one")]
SPREADS = {
    "two directions": np.r_[1.0, 0.7, np.full(SIZE - 2, 0.02)],
    "falling": 1 / np.arange(1, SIZE + 1),
    "all alike": np.full(SIZE, 0.2),
}


@pytest.fixture(autouse=True)
def few_trials(monkeypatch):
    """Make calibration quick; its own error is small beside that of the fields."""
    monkeypatch.setattr(calibration, "TRIALS", 200)


def field(seed, spread, *, clients=10, steps=12, drift=0.0, lean=0.0):
    """Return the mean vectors of honest clients and the noise of their steps.

    The first client's vectors are moved by ``lean``.
    """
    generator, known = np.random.default_rng(seed), StepNoise()
    common = np.ones(SIZE)
    means = np.zeros((clients, SIZE))
    for step in range(steps):
        for client in range(clients):
            noise = spread * generator.standard_normal(SIZE)
            vector = common + step * drift + noise + lean * (client == 0)
            known.add("code", client, torch.from_numpy(vector))
            means[client] += vector / steps
    return means, known.of("code")


def honest_scores(means, noise, consensus="mean", sides="two"):
    clients = list(range(len(means)))
    return HonestScores(means, noise, clients, consensus=consensus, sides=sides)


def rates(spread, threshold=None, rate=None, consensus="mean", sides="two"):
    """Return the stated and the measured rate of false alarms."""
    stated, alarms = [], []
    for seed in range(FIELDS):
        means, noise = field(seed, spread)
        honest = honest_scores(means, noise, consensus, sides)
        limit = honest.threshold_for(rate) if threshold is None else threshold
        scores = cosine_scores(means, consensus=consensus, sides=sides)
        stated.append(honest.rate_above(limit))
        alarms.append(scores.max() > limit)
    return np.mean(stated), np.mean(alarms)


def tolerance(rate):
    """Return three standard deviations of a measured rate."""
    return 3 * np.sqrt(rate * (1 - rate) / FIELDS) + 0.01


@pytest.mark.parametrize("spread", SPREADS.values(), ids=SPREADS)
def test_the_rate_of_the_papers_threshold_is_the_measured_one(spread):
    stated, measured = rates(spread, threshold=3.0)
    assert measured == pytest.approx(stated, abs=tolerance(stated))


def test_noise_in_few_directions_raises_more_alarms_than_noise_in_many():
    few = honest_scores(*field(0, SPREADS["two directions"])).rate_above(3.0)
    many = honest_scores(*field(0, SPREADS["all alike"])).rate_above(3.0)
    assert few > many + 0.1


@pytest.mark.parametrize(("consensus", "sides"), FORMS)
def test_a_threshold_set_by_a_rate_keeps_it(consensus, sides):
    form = {"consensus": consensus, "sides": sides}
    stated, measured = rates(SPREADS["falling"], rate=0.1, **form)
    assert stated == pytest.approx(0.1, abs=0.01)
    assert measured == pytest.approx(0.1, abs=tolerance(0.1))


def test_a_client_that_leans_does_not_widen_the_noise():
    spread = SPREADS["falling"]
    alone = honest_scores(*field(0, spread)).threshold_for(0.05)
    leaning = honest_scores(*field(0, spread, lean=3.0)).threshold_for(0.05)
    assert leaning == pytest.approx(alone, rel=0.3)


def test_a_slow_drift_of_all_clients_hardly_matters():
    spread = SPREADS["falling"]
    still = honest_scores(*field(0, spread)).threshold_for(0.05)
    drifting = honest_scores(*field(0, spread, drift=0.02)).threshold_for(0.05)
    assert drifting == pytest.approx(still, rel=0.1)


@pytest.mark.parametrize("rate", [0, 1, -0.5])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ConfigError, match="between 0 and 1"):
        check_rate(rate)
