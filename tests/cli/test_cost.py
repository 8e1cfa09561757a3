import json

import pytest

pytestmark = pytest.mark.slow


def test_the_usual_codecs_are_compared(lightsplit):
    shown = lightsplit("cost", "--dataset", "digits", "--epochs", 2).stdout
    for words in ("raw", "lightsplit-f 32x", "lightsplit-f 8x dct", "hand", "server"):
        assert words in shown


def test_json_has_the_bytes_and_operations_of_one_codec(lightsplit):
    options = ["--dataset", "digits", "--codec", "topk", "--samples", 100]
    (entry,) = json.loads(lightsplit("cost", *options, "--json").stdout)
    assert entry["experiment"]["codec"]["name"] == "topk"
    assert entry["traffic"]["samples"] == 500
    assert entry["traffic"]["bytes"]["total"] > 0
    assert entry["computation"]["client"]["forward_flops"] > 0


def test_the_forecast_equals_the_bytes_that_train_counts(lightsplit, quick, tmp_path):
    out = ["--out", tmp_path / "run", "--json"]
    record = json.loads(lightsplit("train", *quick, "--ratio", 16, *out).stdout)
    (entry,) = json.loads(lightsplit("cost", *quick, "--ratio", 16, "--json").stdout)
    assert entry["traffic"]["bytes"] == record["bytes"]


@pytest.mark.parametrize(
    "options",
    [["--codec", "raw", "--ratio", "8"], ["--clients", "9999"], ["--cut", "l3"]],
)
def test_invalid_settings_are_refused(refused, options):
    refused("cost", *options)


FLAT_TASK = """
import torch
from torch import nn
from lightsplit import Task


def task():
    return Task(
        model=lambda: nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2)),
        example=lambda: (torch.zeros(2, 4), torch.zeros(2).long()),
        head_until="0",
        tail_from="2",
    )
"""


def test_a_usual_codec_that_does_not_fit_the_cut_is_left_out(lightsplit, tmp_path):
    file = tmp_path / "flat.py"
    file.write_text(FLAT_TASK)
    shown = lightsplit("cost", "--task", file, "--samples", 100)
    assert "left out: learned-1x1 8x: learned-1x1 needs a shape" in shown.stderr
    assert "topk 8x" in shown.stdout
    assert "learned-1x1" not in shown.stdout
