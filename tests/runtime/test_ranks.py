import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from lightsplit import ServerSide, make_codec
from lightsplit.errors import ConfigError
from lightsplit.runtime.ranks import check_divisible, device_of_this_rank

SCRIPT = Path(__file__).parent / "rank_script.py"


@pytest.mark.slow
def test_outputs_gradients_and_weights_are_those_of_one_rank(tmp_path):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3"]
    ended = subprocess.run(
        [sys.executable, *launcher, SCRIPT, tmp_path / "verdict"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "verdict").read_text() == "equal"


def make_side(*layers, **options):
    codec = make_codec("raw", shape=(6,))
    return ServerSide(nn.Sequential(*layers), codec, torch.optim.Adam, **options)


def test_batch_normalisation_needs_the_whole_batch():
    check_divisible(make_side(nn.Linear(6, 6), nn.LayerNorm(6)))
    check_divisible(make_side(nn.BatchNorm1d(6), normalisation="frozen"))
    without = nn.BatchNorm1d(6, track_running_stats=False)
    for side in (
        make_side(nn.BatchNorm1d(6)),
        make_side(without, normalisation="frozen"),
    ):
        with pytest.raises(ConfigError, match="batch normalisation needs it whole"):
            check_divisible(side)


def test_weights_of_two_dtypes_are_refused():
    side = make_side(nn.Linear(6, 6), nn.Linear(6, 6).double())
    with pytest.raises(ConfigError, match="one dtype"):
        check_divisible(side)


@pytest.mark.parametrize(
    ("asked", "got"),
    [("cuda", "cuda:1"), ("cuda:0", "cuda:0"), ("cpu", "cpu"), ("xpu", "xpu:1")],
)
def test_each_rank_of_a_machine_has_an_accelerator_of_its_own(asked, got, monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert device_of_this_rank(torch.device(asked)) == torch.device(asked)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert device_of_this_rank(torch.device(asked)) == torch.device(got)
