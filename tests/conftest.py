"""Every test starts from one seed and one thread, and must leave nothing behind."""

import os
import threading

import pytest
import torch

torch.set_num_threads(1)


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
    before = {thread.ident for thread in threading.enumerate()}
    yield
    left = [t for t in threading.enumerate() if t.ident not in before]
    for thread in left:
        thread.join(timeout=10)  # gRPC's and rich's end a moment after they are closed
    running = [thread.name for thread in left if thread.is_alive()]
    assert not running, f"the test left threads running: {running}"


def _environment():
    """Return the variables, those left out that torch and pytest set by themselves."""
    own = ("PYTEST_", "TORCH", "TRITON", "KMP_")
    return {k: v for k, v in os.environ.items() if not k.startswith(own)}
