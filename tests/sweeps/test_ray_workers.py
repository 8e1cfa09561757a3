"""Ray that does not start; test_workers covers Ray that does."""

from types import SimpleNamespace

import pytest

from lightsplit.errors import ConfigError
from lightsplit.sweeps import ray_workers

REASON = "The current node timed out"


class BusyRay:
    """Fails to start a few times."""

    def __init__(self, failures, kind=Exception):
        self.failures = failures
        self.kind = kind
        self.starts = 0
        self.shutdowns = 0

    def init(self, **_options):
        self.starts += 1
        if self.starts <= self.failures:
            raise self.kind(f"{REASON}\nand more")

    def shutdown(self):
        self.shutdowns += 1


@pytest.fixture
def pauses(monkeypatch):
    """Return the pauses between the attempts, which take no time here."""
    found = []
    clock = SimpleNamespace(sleep=found.append)
    monkeypatch.setattr(ray_workers, "time", clock)
    return found


def test_a_node_that_starts_at_once_is_not_talked_about(pauses):
    ray, said = BusyRay(0), []
    ray_workers._start(ray, said.append)
    assert (ray.starts, ray.shutdowns, said, pauses) == (1, 0, [], [])


@pytest.mark.parametrize("failures", range(1, ray_workers.STARTS))
def test_a_node_that_fails_to_start_is_tried_again_after_a_pause(pauses, failures):
    ray, said = BusyRay(failures), []
    ray_workers._start(ray, said.append)
    assert ray.starts == failures + 1
    assert ray.shutdowns == failures
    assert pauses == [ray_workers.PAUSE_SECONDS] * failures
    assert len(said) == failures
    assert said[0] == (
        f"Ray did not start ({REASON}); trying again in 5 s, attempt 2 of 3"
    )


@pytest.mark.parametrize("kind", [Exception, RuntimeError, ConnectionError])
def test_a_node_that_never_starts_ends_in_one_sentence(pauses, kind):
    ray, said = BusyRay(100, kind), []
    with pytest.raises(ConfigError) as caught:
        ray_workers._start(ray, said.append)
    assert ray.starts == ray_workers.STARTS == ray.shutdowns
    assert len(said) == len(pauses) == ray_workers.STARTS - 1
    assert "\n" not in str(caught.value)
    assert f"failed 3 times ({REASON}); leave out --ray" in str(caught.value)


def test_a_cluster_that_cannot_be_reached_is_one_line_without_another_attempt(pauses):
    ray = BusyRay(100, ConnectionError)
    with pytest.raises(ConfigError) as caught:
        ray_workers._connect(ray, "host:6379")
    assert str(caught.value) == f"cannot reach Ray at 'host:6379': {REASON}"
    assert (ray.starts, pauses) == (1, [])
