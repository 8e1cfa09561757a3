"""The memory of this process."""

from pathlib import Path

import pytest

from lightsplit.deployment.status import memory


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
def test_memory_grows_with_what_is_taken():
    before = memory.resident_bytes()
    taken = bytearray(b"x" * 2**26)
    assert memory.resident_bytes() > before + len(taken) // 2


def test_a_system_that_does_not_say_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_STATM", tmp_path / "absent")
    assert memory.resident_bytes() is None
