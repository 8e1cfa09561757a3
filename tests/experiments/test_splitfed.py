"""SplitFed in an experiment: what it sets, what it refuses, and that it resumes."""

import pytest
import torch

from lightsplit.errors import ConfigError
from lightsplit.experiments import build, from_settings, run
from lightsplit.experiments.checks import check_absence
from lightsplit.experiments.communication import foresee_traffic
from lightsplit.results import RunFolder

SMALL = {
    "clients": 3,
    "train_limit": 96,
    "test_limit": 24,
    "batch_size": 8,
    "turn_steps": 2,
    "epochs": 2,
    "projection": "dct",
}
VERSIONS = ["splitfed-v1", "splitfed-v2"]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"heads": "private"}, "heads private"),
        ({"gradients": "none", "ratio": 1}, "gradients none"),
        ({"release": "once"}, "release once"),
        ({"detector": "cosine-code"}, "detector cosine-code"),
        ({"hand_off": "int8"}, "hand_off int8"),
    ],
)
def test_what_does_not_go_with_splitfed_is_refused_by_name(settings, named):
    with pytest.raises(ConfigError, match=f"SplitFed does not go with {named}"):
        from_settings({**SMALL, "rounds": "splitfed-v1", **settings})


@pytest.mark.parametrize(
    ("most", "steps"), [(5, 6), (17, 12), (25, 24), (100, 24)], ids=str
)
def test_rounds_are_never_cut_short(most, steps):
    settings = {**SMALL, "rounds": "splitfed-v2", "max_steps": most}
    assert build(from_settings(settings)).trainer.schedule.total_steps == steps


def test_an_owner_may_be_away_only_where_the_length_of_its_turns_is_known():
    settings = {**SMALL, "rounds": "splitfed-v1", "turn_steps": "epoch"}
    with pytest.raises(ConfigError, match="--turn-steps, got epoch"):
        check_absence(from_settings(settings), 2)
    check_absence(from_settings({**settings, "turn_steps": 2}), 2)


def states(experiment):
    job = build(experiment)
    list(job.trainer.run())
    sides = [job.trainer.server.side, job.trainer.clients[0].side]
    return [side.state() for side in sides]


@pytest.mark.slow
@pytest.mark.parametrize("rounds", VERSIONS)
def test_a_lone_owner_has_nobody_to_average_with_and_takes_turns(rounds):
    alone = {**SMALL, "clients": 1, "train_limit": 32}
    expected, got = (
        states(from_settings({**alone, "rounds": kind})) for kind in ("turns", rounds)
    )
    for mine, theirs in zip(got, expected, strict=True):
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"rounds": "splitfed-v1"},
        {"rounds": "splitfed-v2", "turn_steps": "epoch", "lr_schedule": "cosine"},
        {"rounds": "splitfed-v1", "topology": "vanilla", "accumulate": 2},
    ],
    ids=["v1", "v2, whole epochs", "vanilla"],
)
def test_a_resumed_run_is_the_uninterrupted_one_and_its_bytes_were_foreseen(
    settings, tmp_path
):
    experiment = from_settings({**SMALL, **settings})
    whole, parted = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "parted")
    expected = run(experiment, whole)
    assert run(experiment, parted, observe=lambda *_: False) is None
    got = run(experiment, parted)
    newest = [
        sorted((one.checkpoint / "step-00000024").glob("*.safetensors"))
        for one in (whole, parted)
    ]
    assert len(newest[0]) == len(newest[1]) == 2
    for mine, theirs in zip(*newest, strict=True):
        assert mine.read_bytes() == theirs.read_bytes()
    assert got["bytes"] == expected["bytes"] == foresee_traffic(experiment).bytes
