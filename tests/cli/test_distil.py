import json

import pytest

pytestmark = pytest.mark.slow


def test_a_codec_is_distilled_and_used(lightsplit, refused, quick, tmp_path):
    teacher, file = tmp_path / "public", tmp_path / "franken.safetensors"
    lightsplit("train", *quick, "--codec", "raw", "--out", teacher)
    small = ("--channels", 2, "--hidden", 4)
    said = lightsplit("distil", teacher, "--out", file, *small, "--epochs", 2)
    assert "bytes a sample on the wire" in said.stdout
    assert said.stderr.count("squared error") == 2
    codec = f"franken:trained={file},channels=2,hidden=4"
    use = (*quick, "--codec", codec, "--weights", teacher / "model.safetensors")
    assert "gradients must be none" in refused("train", *use)
    use = (*use, "--gradients", "none")
    out = tmp_path / "run"
    lightsplit("train", *use, "--out", out)
    record = json.loads((out / "record.json").read_text())
    assert (
        0 < record["bytes"]["code"] < 120 * record["certificate"]["bits_per_code"] / 8
    )
    assert "bytes here are the most" in lightsplit("cost", *use).stdout
    shown = json.loads(lightsplit("cost", *use, "--json").stdout)
    assert shown[0]["traffic"]["is_exact"] is False
    assert record["bytes"]["code"] < shown[0]["traffic"]["bytes"]["code"]


def test_a_folder_that_is_no_run_is_refused(refused, tmp_path):
    said = refused("distil", tmp_path, "--out", tmp_path / "file")
    assert "is not a run" in said
    assert not list(tmp_path.iterdir())
