import resource
import subprocess
import sys

import pytest

from lightsplit.errors import ConfigError
from lightsplit.transports import descriptors


def limited_to(monkeypatch, soft):
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (soft, soft))
    return descriptors.connection_limit()


def test_some_descriptors_are_kept_for_files(monkeypatch):
    assert limited_to(monkeypatch, 1024) == 1024 - descriptors.RESERVED


def test_there_is_always_room_for_a_few_and_a_bound_for_many(monkeypatch):
    assert limited_to(monkeypatch, 40) == descriptors.FEWEST
    assert limited_to(monkeypatch, resource.RLIM_INFINITY) == 2**20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("soft", "hard", "connections", "after"),
    [(200, 600, 300, 428), (200, 600, 2000, 600), (500, 600, 300, 500)],
)
def test_the_limit_is_raised_as_far_as_needed_and_allowed(
    soft, hard, connections, after
):
    code = f"""
import resource
from lightsplit.transports import descriptors

resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
descriptors.raise_limit({connections})
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(after), str(hard)]


def test_more_owners_than_descriptors_are_refused(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (1024, 1024))
    descriptors.make_room(1024 - descriptors.RESERVED)
    with pytest.raises(ConfigError, match=r"allows it 1,024; .*: ulimit -n 1128"):
        descriptors.make_room(1000)
