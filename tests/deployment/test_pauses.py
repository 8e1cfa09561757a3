import pytest

from lightsplit.deployment import pauses
from lightsplit.deployment.pauses import Pauses


class Clock:
    def __init__(self):
        self.now = 100.0
        self.slept = []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(pauses, "time", clock)
    return clock


def test_pauses_double_up_to_the_longest(clock):
    line = Pauses(600)
    for _ in range(9):
        line.before_try()
    assert clock.slept == [0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5]


def test_progress_starts_them_anew(clock):
    line = Pauses(600)
    for _ in range(5):
        line.before_try()
    line.restart()
    line.before_try()
    assert clock.slept[-1] == 0


def test_a_line_that_breaks_at_once_does_not_and_one_that_held_does(clock):
    line = Pauses(600)
    for _ in range(5):
        line.before_try()
        line.note_open()
    assert clock.slept[-1] == 0.8
    clock.now += 6
    line.before_try()
    assert clock.slept[-1] == 0


def test_tries_that_lead_nowhere_are_given_up(clock):
    line, tries = Pauses(10), 0
    while not line.is_time_up:
        line.before_try()
        line.note_open()
        tries += 1
    assert tries == 7
    assert 100 < clock.now <= 110
