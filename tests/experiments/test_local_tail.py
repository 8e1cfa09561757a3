"""Runs in which nothing is sent: codec none."""

from pathlib import Path

import pytest
import torch

from lightsplit.errors import ConfigError
from lightsplit.experiments import from_settings
from lightsplit.experiments.communication import foresee_traffic
from lightsplit.experiments.local_tail import make_local_tail
from lightsplit.results import tensors
from lightsplit.runtime import Secret

OWN_TASK = f"{Path(__file__).parents[1]}/integration/own_task/my_task.py:pair"
STEP = ("code", "output", "output_gradient", "code_gradient", "labels", "evaluation")


@pytest.mark.parametrize("hidden", [0, 7])
@pytest.mark.parametrize("result", [(3,), (2, 5)])
def test_the_layer_gives_the_model_s_result_from_an_activation(result, hidden):
    tail = make_local_tail((4, 2, 2), result, Secret(1), hidden)
    again = make_local_tail((4, 2, 2), result, Secret(1), hidden)
    activation = torch.randn(6, 4, 2, 2)
    assert tail(activation).shape == (6, *result)
    assert torch.equal(tail(activation), again(activation))


@pytest.mark.slow
@pytest.mark.parametrize("heads", ["shared", "private"])
def test_clients_learn_alone_and_only_the_head_travels(finished, heads):
    record = finished(codec="none", heads=heads).record
    assert all(record["bytes"][kind] == 0 for kind in STEP)
    assert (record["bytes"]["hand_off"] > 0) == (heads == "shared")
    assert record["ratio"] is record["step_ratio"] is None
    assert record["certificate"]["bits_per_sample"] == 0
    assert record["certificate"]["reidentification_bound"] == 0
    assert record["steps"] > 0


@pytest.mark.slow
def test_the_client_alone_learns_the_digits(finished):
    record = finished(codec="none", train_limit=600, epochs=6, lr=3e-3).record
    assert record["test_accuracy"] > 0.5


@pytest.mark.slow
def test_the_saved_model_has_the_trained_head_and_not_the_layer_beside_it(finished):
    done = finished(task=OWN_TASK, codec="none:hidden=8")  # names as in the model
    saved = tensors.load(done.folder.path / "model.safetensors")
    first = done.job.parts.whole.state_dict()
    trained = done.job.trainer.clients[0].side.modules["head"].state_dict()
    assert saved.keys() == first.keys()
    assert all(saved[name].equal(trained[name]) for name in trained)
    assert all(saved[n].equal(first[n]) for n in first.keys() - trained.keys())


@pytest.mark.slow
def test_a_hidden_layer_makes_the_client_s_own_model_deeper(finished):
    plain = finished(codec="none").record
    deep = finished(codec="none:hidden=32").record
    assert deep["bytes"]["hand_off"] > plain["bytes"]["hand_off"]
    assert deep["bytes"]["code"] == 0


@pytest.mark.parametrize("hidden", [-1, 65_537])
def test_a_hidden_layer_has_a_width_within_reason(hidden):
    with pytest.raises(ConfigError, match=f"hidden must be from 1.*got {hidden}"):
        from_settings({"codec": f"none:hidden={hidden}"})


@pytest.mark.slow
def test_the_forecast_is_what_the_run_counts(finished):
    done = finished(codec="none")
    traffic = foresee_traffic(done.job.experiment)
    assert traffic.bytes == done.record["bytes"]
    assert traffic.step_ratio is None


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"topology": "vanilla"}, "topology must be u"),
        ({"detector": "cosine-code"}, "nothing to watch or attack: drop cosine-code"),
        ({"inspector": "splitguard"}, "drop splitguard"),
        ({"hijack": True}, "drop hijack"),
    ],
)
def test_what_needs_messages_is_refused(more, reason):
    with pytest.raises(ConfigError, match=reason):
        from_settings({"codec": "none", **more})
