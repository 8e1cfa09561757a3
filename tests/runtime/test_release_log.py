import pytest
import torch

from lightsplit.codecs import Code
from lightsplit.errors import RunError
from lightsplit.protocol import Release
from lightsplit.runtime.release_log import FILE_NAME, ReleaseLog


def release(first, value, *, is_training=True):
    return Release(0, 4, first, Code(torch.full((2, 3), value)), is_training)


@pytest.mark.parametrize("is_kept", [True, False])
def test_other_codes_of_the_same_samples_are_never_sent(is_kept, tmp_path):
    log = ReleaseLog(tmp_path if is_kept else None)
    log.note(release(0, 1.0))
    log.note(release(2, 2.0))
    log.note(release(0, 3.0, is_training=False))
    again = ReleaseLog(tmp_path) if is_kept else log
    again.note(release(0, 1.0))
    with pytest.raises(RunError, match="training samples from number 2 on"):
        again.note(release(2, 2.5))
    with pytest.raises(RunError, match="test samples from number 0 on"):
        again.note(release(0, 1.0, is_training=False))


def test_a_line_is_written_once_and_for_its_owner_alone(tmp_path):
    for _ in range(2):
        ReleaseLog(tmp_path).note(release(0, 1.0))
    file = tmp_path / FILE_NAME
    assert len(file.read_text().splitlines()) == 1
    assert file.stat().st_mode & 0o077 == 0


def test_a_damaged_log_is_refused_with_its_line(tmp_path):
    (tmp_path / FILE_NAME).write_text("{}\n")
    with pytest.raises(RunError, match=r"line 1 of .* does not say which codes"):
        ReleaseLog(tmp_path)
