import threading
import time
from collections import Counter

import pytest

from lightsplit.deployment.prediction_share import PredictionShare

SECONDS = 0.02


def ask_for(share, clients, seconds):
    """Let every client ask without a pause; return its number of predictions."""
    done = Counter()
    end = time.monotonic() + seconds

    def ask(client):
        while time.monotonic() < end:
            with share.turn(client):
                time.sleep(SECONDS)
                done[client] += 1

    threads = [threading.Thread(target=ask, args=(one,)) for one in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def test_one_prediction_is_computed_at_a_time():
    share, inside, most = PredictionShare(lambda: False), [0], [0]

    def ask():
        with share.turn(0):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.005)
            inside[0] -= 1

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_predictions_leave_half_of_the_time_to_training():
    done = ask_for(PredictionShare(lambda: True), range(4), 1.0)
    assert 3 <= sum(done.values()) <= 0.5 * 1.0 / SECONDS + 4


def test_without_training_there_is_no_pause():
    done = ask_for(PredictionShare(lambda: False), range(2), 0.5)
    assert sum(done.values()) > 0.5 * 0.5 / SECONDS


def test_a_name_with_many_streams_gets_no_more_than_the_others():
    done = ask_for(PredictionShare(lambda: False), [0, 0, 0, 0, 0, 1], 1.0)
    assert done[1] >= 0.7 * done[0]


def test_a_prediction_that_fails_frees_its_turn():
    share = PredictionShare(lambda: False)
    with pytest.raises(ValueError, match="no"), share.turn(0):
        raise ValueError("no")
    with share.turn(0):
        pass
