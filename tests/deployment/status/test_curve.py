"""A curve keeps its ends and stays short."""

from lightsplit.deployment.status.curve import Curve


def test_a_short_curve_has_every_point():
    curve = Curve()
    for step in range(5):
        curve.add(step, step / 2)
    curve.add(4, 9.0)  # the same step again: the first value stays
    assert curve.points == [(0, 0.0), (1, 0.5), (2, 1.0), (3, 1.5), (4, 2.0)]


def test_a_long_curve_stays_short_and_covers_all_steps():
    curve = Curve()
    for step in range(100_000):
        curve.add(step, 0.0)
    steps = [step for step, _ in curve.points]
    assert 100 <= len(steps) <= 512
    assert steps == sorted(set(steps))
    assert steps[0] == 0
    assert steps[-1] > 99_000
