import pytest

from lightsplit.backdoors import make_detector
from lightsplit.errors import ConfigError


def test_the_papers_threshold_is_the_default(field):
    verdict = make_detector("cosine-code", clients=10).judge(field(10))
    assert verdict.threshold == 3


def test_a_verdict_states_its_false_alarm_rate(field):
    detector = make_detector("cosine-code", clients=10, false_alarm_rate=0.05)
    verdict = detector.judge(field(10))
    assert verdict.false_alarm_rate == pytest.approx(0.05, abs=0.002)
    assert verdict.threshold > 3


def test_threshold_and_false_alarm_rate_exclude_each_other():
    with pytest.raises(ConfigError, match="not both"):
        make_detector("cosine-code", clients=5, threshold=3.0, false_alarm_rate=0.1)


def test_code_and_output_are_judged_apart(field, make_piece):
    honest, leaning = field(10), field(10, malicious=[2])
    mixed = [
        type(one)(one.client, code=one.code, output=other.output)
        for one, other in zip(honest, leaning, strict=True)
    ]
    code = make_detector("cosine-code", clients=10).judge(mixed)
    output = make_detector("cosine-output", clients=10).judge(mixed)
    assert output.scores[2] > 10 > code.scores[2]
