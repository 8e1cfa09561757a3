import pytest

from lightsplit.deployment.state_folder import StateFolder
from lightsplit.errors import RunError


def test_sides_are_kept_by_step_until_the_server_needs_them_no_more(tmp_path):
    folder = StateFolder(tmp_path)
    for step in (1, 2, 3):
        folder.save_side(step, bytes([step]))
    folder.forget_sides_before(2)
    assert [folder.load_side(step) for step in (2, 3)] == [b"\2", b"\3"]
    with pytest.raises(RunError, match=r"step 1, but .* does not hold the side"):
        folder.load_side(1)


def test_nobody_else_may_read_a_side(tmp_path):
    StateFolder(tmp_path / "alice").save_side(4, b"side")
    (file,) = (tmp_path / "alice").iterdir()
    assert file.stat().st_mode & 0o077 == 0


def test_a_draft_that_a_killed_client_left_is_removed(tmp_path):
    draft = tmp_path / "side-00000001.safetensors.0badcafe.tmp"
    draft.write_bytes(b"half")
    StateFolder(tmp_path)
    assert not draft.exists()
    StateFolder(tmp_path / "not made yet")
