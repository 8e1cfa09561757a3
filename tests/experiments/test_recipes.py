"""Recipes in whole runs: a resumed run is the uninterrupted one."""

import pytest
import torch

from lightsplit.errors import ConfigError
from lightsplit.experiments import run
from lightsplit.results import RunFolder

RECIPES = [
    {"lr_schedule": "cosine", "warm_up": 5},
    {"lr_schedule": "step", "lr_decay": 0.5, "lr_drops": "0.3,0.6"},
    {"clip": 0.05},
    {"precision": "bf16"},
    {"augment": ["crop:padding=1", "flip"]},
    {"accumulate": 2, "turn_steps": 2},
    {"accumulate": 3, "turn_steps": "epoch", "heads": "private"},
]


LONG = {"eval_every": 5, "epochs": 3}  # two epochs and a half without an evaluation


@pytest.mark.slow
@pytest.mark.parametrize("settings", [*RECIPES, LONG], ids=str)
def test_a_resumed_run_is_the_uninterrupted_one(settings, finish, small, tmp_path):
    whole, turns = finish(**settings), []
    folder = RunFolder.create(tmp_path / "resumed")

    def stop_soon(_job, done):
        turns.append(done)
        return len(turns) != 2

    assert run(small(**settings), folder, observe=stop_soon) is None
    jobs = []
    run(small(**settings), folder, started=jobs.append)
    expected = whole.job.trainer.server.side.state()
    got = jobs[0].trainer.server.side.state()
    assert all(torch.equal(got[name], expected[name]) for name in expected)
    mine = whole.job.trainer.clients[1].side.state()
    resumed = jobs[0].trainer.clients[1].side.state()
    assert all(torch.equal(resumed[name], mine[name]) for name in mine)


@pytest.mark.slow
@pytest.mark.parametrize("settings", RECIPES, ids=str)
def test_a_recipe_changes_the_outcome(settings, finish):
    plain = {key: settings[key] for key in ("turn_steps", "heads") if key in settings}
    ours = finish(**settings).job.trainer.server.side.state()
    usual = finish(**plain).job.trainer.server.side.state()
    assert any(not torch.equal(ours[name], usual[name]) for name in usual)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"accumulate": 2}, "multiple of accumulate, 2, got 1"),
        ({"accumulate": 2, "turn_steps": 3}, "multiple of accumulate, 2, got 3"),
        (
            {"accumulate": 2, "turn_steps": 2, "inspector": "splitguard"},
            "accumulate must be 1 with an inspector, got 2",
        ),
        ({"lr_drops": "0.5,0.2"}, "growing shares of the run .* got '0.5,0.2'"),
        ({"lr_drops": "soon"}, "growing shares of the run .* got 'soon'"),
        ({"lr_schedule": "linear"}, "training.lr_schedule"),
        ({"clip": 0}, "training.clip"),
        ({"augment": "rotate"}, "unknown augmentation 'rotate'; known: crop, flip"),
        ({"augment": "crop:size=3"}, "size"),
    ],
    ids=str,
)
def test_an_impossible_recipe_is_refused(settings, message, small):
    with pytest.raises(ConfigError, match=message):
        small(**settings)
