import pytest
import torch

pytestmark = pytest.mark.slow


def test_a_run_is_exported_and_can_be_loaded(lightsplit, quick, tmp_path):
    run = tmp_path / "run"
    lightsplit("train", *quick, "--out", run)
    result = lightsplit("export", run)
    assert "torch.export.load" in result.stdout
    program = torch.export.load(run / "export" / "model.pt2").module()
    assert program(torch.zeros(3, 1, 8, 8)).shape == (3, 10)


def test_a_folder_that_is_no_run_is_refused(refused, tmp_path):
    assert "is not a run" in refused("export", tmp_path)
    assert not list(tmp_path.iterdir())
