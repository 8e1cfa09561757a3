import numpy as np
import pytest
import torch

from lightsplit.backdoors import DETECTORS, Evidence
from lightsplit.backdoors.step_noise import StepNoise
from lightsplit.errors import ConfigError


def test_the_papers_threshold_is_the_default(field):
    verdict = DETECTORS.create("cosine-code", clients=10).judge(field(10))
    assert verdict.threshold == 3


@pytest.fixture
def noisy_field(field):
    """Return evidence of clients that had 20 steps each, with the noise of the steps.

    The first client is malicious if asked for.
    """

    def make(clients=10, lean=0.0):
        generator, noise = np.random.default_rng(0), StepNoise()
        common, away = generator.standard_normal((2, 30))
        means = np.zeros((clients, 30))
        for _ in range(20):
            for client in range(clients):
                vector = common + 0.3 * generator.standard_normal(30)
                vector += lean * away * (client == 0)
                noise.add("code", client, torch.from_numpy(vector))
                means[client] += vector / 20
        known = {"code": noise.of("code")}
        return [
            Evidence(client, code=torch.from_numpy(mean), noise=known)
            for client, mean in enumerate(means)
        ]

    return make


def test_a_verdict_states_its_false_alarm_rate(noisy_field):
    verdict = DETECTORS.create("cosine-code", clients=10).judge(noisy_field())
    assert verdict.threshold == 3
    assert 0.01 < verdict.false_alarm_rate < 0.9


def test_a_wanted_rate_sets_the_threshold_of_each_verdict(noisy_field):
    detector = DETECTORS.create("cosine-code", clients=10, false_alarm_rate=0.05)
    verdict = detector.judge(noisy_field())
    assert verdict.false_alarm_rate == pytest.approx(0.05, abs=0.002)
    assert verdict.threshold > 3
    assert detector.judge(noisy_field(lean=1.0)).flagged == (0,)


def test_without_noise_there_is_no_rate_and_the_papers_threshold(field):
    detector = DETECTORS.create("cosine-code", clients=10, false_alarm_rate=0.05)
    verdict = detector.judge(field(10))
    assert verdict.false_alarm_rate is None
    assert verdict.threshold == 3


def test_threshold_and_false_alarm_rate_exclude_each_other():
    with pytest.raises(ConfigError, match="not both"):
        DETECTORS.create("cosine-code", clients=5, threshold=3.0, false_alarm_rate=0.1)


def test_code_and_output_are_judged_apart(field, make_piece):
    honest, leaning = field(10), field(10, malicious=[2])
    mixed = [
        type(one)(one.client, code=one.code, output=other.output)
        for one, other in zip(honest, leaning, strict=True)
    ]
    code = DETECTORS.create("cosine-code", clients=10).judge(mixed)
    output = DETECTORS.create("cosine-output", clients=10).judge(mixed)
    assert output.scores[2] > 10 > code.scores[2]
