"""The time that a server spends computing."""

import pytest

from lightsplit.deployment import stopwatch as module
from lightsplit.deployment.stopwatch import Stopwatch


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that a test sets."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_blocks_add_up_and_what_is_between_them_does_not_count(clock):
    watch = Stopwatch()
    for _ in range(2):
        clock[0] += 3
        with watch:
            clock[0] += 1
    assert watch.seconds == 2
    assert watch.share == 0.25


def test_a_block_that_fails_counts_too(clock):
    watch = Stopwatch()

    def fail():
        clock[0] += 1
        raise KeyError

    with pytest.raises(KeyError), watch:
        fail()
    assert watch.share == 1


def test_a_watch_that_was_just_made_has_no_share(clock):
    assert Stopwatch().share == 0
