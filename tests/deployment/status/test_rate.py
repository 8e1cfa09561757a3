"""The rate of steps forgets what is long past."""

from lightsplit.deployment.status.rate import Rate


def test_the_rate_is_that_of_the_last_seconds():
    rate = Rate()
    assert rate.at(100.0, 940) == 0.0  # done before this server was started
    assert rate.at(102.0, 944) == 2.0
    assert rate.at(109.0, 976) == 4.0
    assert rate.at(112.5, 997) == 6.0  # since the last look
    assert rate.at(200.0, 997) == 0.0
