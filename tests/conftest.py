"""Every test starts from one seed and one thread, and must leave nothing behind."""

import os
import threading
import time
from pathlib import Path

import hypothesis
import pytest
import torch

torch.set_num_threads(1)
# A busy machine may take its time over an example; every test has a timeout anyway.
# CI tries the same examples in every run, so that it judges the change alone.
hypothesis.settings.register_profile(
    "lightsplit",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("lightsplit")

SLOW_SECONDS = 900  # for a test marked slow that names no limit of its own
# Files that take long come first, so that no worker is left with one at the end.
LONG_FIRST = ("integration", "docs", "cli", "sweeps/test_workers", "attacks", "audits")


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent

    def place(item):
        name = item.path.relative_to(here).as_posix()
        begins = [name.startswith(long) for long in LONG_FIRST]
        return begins.index(True) if any(begins) else len(begins)

    items.sort(key=place)
    for item in items:
        is_slow = item.get_closest_marker("slow") is not None
        if is_slow and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))


@pytest.fixture(autouse=True)
def _same_seed():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _no_environment_leak():
    before = _environment()
    yield
    assert _environment() == before, "the test changed the environment"


@pytest.fixture(autouse=True)
def _no_thread_leak():
    before = _threads()
    yield
    # gRPC's and rich's end a moment after they are closed; some cannot be joined.
    deadline = time.monotonic() + 60
    while _threads() - before and time.monotonic() < deadline:
        time.sleep(0.005)
    running = [thread.name for thread in _threads() - before]
    assert not running, f"the test left threads running: {running}"


def _threads():
    """Return the threads; tqdm's one for all bars of a process lives to its end."""
    return {one for one in threading.enumerate() if one.name != "tqdm_monitor"}


def _environment():
    """Return the variables, those left out that torch and pytest set by themselves."""
    own = ("PYTEST_", "TORCH", "TRITON", "KMP_")
    return {k: v for k, v in os.environ.items() if not k.startswith(own)}


@pytest.fixture
def pass_time(monkeypatch):
    """Return what lets seconds pass at once, for all that ask for the time."""
    real, ahead = time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: real() + ahead[0])

    def call(seconds):
        ahead[0] += seconds

    return call


@pytest.fixture
def descendants():
    """Return what lists the command lines of all processes below one, by their ids."""
    return _descendants


def _descendants(pid):
    parents, names = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            status = (entry / "stat").read_text()
            names[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue  # it is gone already
        parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])

    def is_below(child):
        while child in parents:
            child = parents[child]
            if child == pid:
                return True
        return False

    return {child: name for child, name in names.items() if is_below(child)}
