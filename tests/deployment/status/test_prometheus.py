"""Metrics that Prometheus' own parser reads."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lightsplit.deployment.status.prometheus import RunCollector


def samples(picture):
    text = RunCollector(lambda: picture).text().decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_figure_of_the_run_is_a_metric(board):
    found = samples(board.picture)
    assert found["lightsplit_steps_total",] == 12
    assert found["lightsplit_turns_total",] == 3
    assert found["lightsplit_bytes_total", "code"] == 100
    assert ("lightsplit_bytes_total", "total") not in found
    assert found["lightsplit_connected", "alice"] == 1
    assert found["lightsplit_connected", "bob"] == 0
    assert found["lightsplit_in_turn", "alice"] == 1
    assert found["lightsplit_refused_total", "unknown-client"] == 1
    assert found["lightsplit_test", "accuracy"] == 0.25
    assert found["lightsplit_resident_memory_bytes",] > 2**20
    assert found["lightsplit_finished",] == 0
    assert ("lightsplit_client_loss", "bob") not in found


@pytest.mark.parametrize("age", [None, 12.5])
def test_the_age_of_a_checkpoint_is_absent_until_there_is_one(board, age):
    found = samples({**board.picture, "checkpoint_age_seconds": age})
    assert found.get(("lightsplit_checkpoint_age_seconds",)) == age


def test_a_server_that_starts_has_metrics_too():
    assert samples({"uptime_seconds": 1.0})["lightsplit_uptime_seconds",] == 1.0
