import threading
import time

import pytest

from lightsplit.deployment import prediction_share as module
from lightsplit.deployment.prediction_share import PredictionShare


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that a test sets."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def in_threads(work, *arguments):
    """Call ``work`` with each of the arguments at once, and wait for all."""
    threads = [threading.Thread(target=work, args=(one,)) for one in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_one_prediction_is_computed_at_a_time():
    share, inside, most = PredictionShare(lambda: False), [0], [0]

    def ask(client):
        with share.turn(client):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.005)
            inside[0] -= 1

    in_threads(ask, *[0] * 6)
    assert most == [1]


def test_predictions_leave_half_of_the_time_to_training():
    share, busy = PredictionShare(lambda: True), []

    def ask(client):
        for _ in range(5):
            with share.turn(client):
                began = time.monotonic()
                time.sleep(0.02)
                busy.append(time.monotonic() - began)

    began = time.monotonic()
    in_threads(ask, *range(4))
    seconds = time.monotonic() - began
    assert len(busy) == 20
    assert seconds >= 2 * sum(busy) - busy[-1]  # nobody waits for the last pause


def test_without_training_there_is_no_pause(clock):
    share, done = PredictionShare(lambda: False), []

    def ask():
        for number in range(3):
            with share.turn(0):
                clock[0] += 1000
            done.append(number)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(60)
    assert done == [0, 1, 2]


def test_a_name_with_many_streams_gets_no_more_than_the_others(clock):
    """Every prediction ends when all other streams are in the queue again."""
    share, order = PredictionShare(lambda: False), []
    running = [0, 0, 0, 0, 0, 1]

    def ask(client):
        for _ in range(3):
            with share.turn(client):
                order.append(client)
                while share._waiting.total() < len(running) - 1:
                    time.sleep(0.001)
                clock[0] += 1
        running.remove(client)

    in_threads(ask, *running)
    assert order[:6].count(1) == 3
    assert order[6:] == [0] * 12


def test_a_prediction_that_fails_frees_its_turn():
    share = PredictionShare(lambda: False)
    with pytest.raises(ValueError, match="no"), share.turn(0):
        raise ValueError("no")
    with share.turn(0):
        pass
