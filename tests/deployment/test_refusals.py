"""Refusals are counted by reason, from any thread."""

import threading

from lightsplit.deployment.refusals import Refusals


def test_refusals_are_counted_by_code():
    refusals = Refusals()

    def count():
        for _ in range(1000):
            refusals.count("busy")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refusals.count("malformed")
    assert refusals.by_code() == {"busy": 4000, "malformed": 1}
