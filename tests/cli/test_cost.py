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
    assert entry["experiment"]["codec"] == "topk"
    assert entry["traffic"]["samples"] == 500
    assert entry["traffic"]["bytes"]["total"] > 0
    assert entry["computation"]["client"]["forward_flops"] > 0


def test_what_is_foreseen_is_what_train_counts(lightsplit, quick, tmp_path):
    out = ["--out", tmp_path / "run", "--json"]
    record = json.loads(lightsplit("train", *quick, "--ratio", 16, *out).stdout)
    (entry,) = json.loads(lightsplit("cost", *quick, "--ratio", 16, "--json").stdout)
    assert entry["traffic"]["bytes"] == record["bytes"]


@pytest.mark.parametrize(
    "options",
    [["--codec", "raw", "--ratio", "8"], ["--clients", "9999"], ["--cut", "l3"]],
)
def test_what_cannot_be_is_refused(refused, options):
    refused("cost", *options)
