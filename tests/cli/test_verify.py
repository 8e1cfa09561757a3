import json
import sys

import pytest

pytestmark = pytest.mark.slow

SOURCE = """
import lightsplit
from torch import nn

def net():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))

def by_hand():
    return lightsplit.SplitModel.by_hand(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))

def no_tail():
    return lightsplit.SplitModel.by_hand(nn.Linear(4, 6), nn.Linear(6, 3))

def no_module():
    return 3

def broken():
    raise KeyError("layer")

def greedy(layers):
    return layers

def untrainable():
    return nn.Sequential(nn.Identity(), nn.ReLU(), nn.Identity())

class Skip(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.c(self.b(self.a(x)) + x)
"""
CUT = {"--head-until": "0", "--tail-from": "2", "--input-shape": "4"}


@pytest.fixture(autouse=True)
def _own_module(tmp_path, monkeypatch):
    (tmp_path / "own_models.py").write_text(SOURCE)
    (tmp_path / "half_models.py").write_text("def net(:")
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("own_models", None)


def arguments(model, **changes):
    options = CUT | {f"--{k.replace('_', '-')}": v for k, v in changes.items()}
    flat = [word for pair in options.items() if pair[1] for word in pair]
    return ["verify", "--model", model, "--steps", "2", *flat]


@pytest.mark.parametrize("cut", ["l1", "l2"])
def test_a_model_of_the_zoo_is_the_same_split_and_whole(lightsplit, cut):
    result = lightsplit("verify", "--model", "tinycnn", "--cut", cut, "--steps", 2)
    assert "split equals unsplit" in result.stdout


def test_a_model_of_the_user_is_tried_in_both_topologies_with_both_optimizers(
    lightsplit,
):
    answer = json.loads(lightsplit(*arguments("own_models:net"), "--json").stdout)
    assert answer["is_same"] is True
    assert {name.split(",")[0] for name in answer["runs"]} == {"u", "vanilla"}
    assert len(answer["runs"]) == 4
    assert all(
        run["steps"] == 2 and run["change"] > 0 for run in answer["runs"].values()
    )


def test_a_model_split_by_hand_needs_no_names(lightsplit):
    options = ["--input-shape", "4", "--steps", "2", "--json"]
    answer = lightsplit("verify", "--model", "own_models:by_hand", *options).stdout
    assert len(json.loads(answer)["runs"]) == 4
    answer = lightsplit("verify", "--model", "own_models:no_tail", *options).stdout
    assert {name.split(",")[0] for name in json.loads(answer)["runs"]} == {"vanilla"}


@pytest.mark.parametrize(
    ("model", "changes", "reason"),
    [
        ("no_such_module:net", {}, "cannot load 'no_such_module:net'"),
        ("half_models:net", {}, "cannot load 'half_models:net': SyntaxError"),
        ("own_models:nothing", {}, "cannot load 'own_models:nothing'"),
        ("own_models:", {}, "cannot load"),
        (":net", {}, "cannot load"),
        ("own_models:SOURCE_IS_NOT_HERE", {}, "cannot load"),
        ("own_models:nn", {}, "is not a function"),
        ("own_models:no_module", {}, "must return an nn.Module, got int"),
        ("own_models:broken", {}, "own_models:broken failed: KeyError: 'layer'"),
        ("own_models:greedy", {}, "own_models:greedy failed: TypeError"),
        ("own_models:untrainable", {}, "cannot be trained"),
        ("own_models:net", {"head_until": ""}, "needs --head-until"),
        ("own_models:net", {"input_shape": ""}, "--input-shape must be integers"),
        ("own_models:net", {"input_shape": "4,x"}, "--input-shape must be integers"),
        ("own_models:net", {"input_shape": "5"}, "refuses inputs of shape (16, 5)"),
        ("own_models:net", {"input_shape": "-4"}, "refuses inputs of shape"),
        ("own_models:net", {"head_until": "nothing"}, "head_until='nothing'"),
        ("own_models:net", {"tail_from": "9"}, "tail_from='9'"),
        ("own_models:net", {"head_until": "2", "tail_from": "0"}, "cannot cut"),
        ("own_models:Skip", {"head_until": "a", "tail_from": "c"}, "2 values cross"),
        ("tinycnn", {}, "are for module:function, got 'tinycnn'"),
    ],
)
def test_an_unsuitable_model_is_refused_in_one_line(refused, model, changes, reason):
    message = refused(*arguments(model, **changes))
    assert reason in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--task", "digits", "--model", "tinycnn"], "are not for --task"),
        (["--task", "digits", "--input-shape", "1,8,8"], "are not for --task"),
        (["--task", "nothing.py"], "there is no task file"),
        (["--task", "digits", "--head-until", "no"], "head_until='no'"),
    ],
)
def test_what_does_not_fit_a_task_is_refused(refused, options, reason):
    assert reason in refused("verify", *options)


def test_a_task_is_verified_with_its_own_loss(lightsplit):
    answer = lightsplit("verify", "--task", "digits", "--steps", 2, "--json").stdout
    assert json.loads(answer)["is_same"] is True


@pytest.mark.parametrize("options", [["--model", "nothing"], ["--cut", "l9"]])
def test_an_unknown_model_or_cut_of_the_zoo_is_refused(refused, options):
    assert "unknown" in refused("verify", *options)


def test_the_search_path_is_left_as_it_was(lightsplit):
    before = list(sys.path)
    lightsplit(*arguments("own_models:net"))
    assert sys.path == before


def test_a_difference_ends_with_code_one(lightsplit, monkeypatch):
    monkeypatch.setattr("lightsplit.simulation.verification.TOLERANCE", -1.0)
    result = lightsplit(*arguments("own_models:net"), code=1)
    assert "does not equal" in result.stdout
