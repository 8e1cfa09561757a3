import pytest
import torch
from torch import nn

from lightsplit.errors import ConfigError, RunError
from lightsplit.experiments import build
from lightsplit.experiments.weights import load_weights
from lightsplit.results import tensors


@pytest.fixture
def model():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


@pytest.fixture
def file(tmp_path):
    def write(content):
        tensors.save(tmp_path / "weights.safetensors", content)
        return tmp_path / "weights.safetensors"

    return write


def test_a_whole_model_is_loaded(model, file):
    other = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    assert load_weights(model, file(other.state_dict())) == len(other.state_dict())
    for name, tensor in other.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)


def test_a_part_of_a_model_leaves_the_rest_alone(model, file):
    before = model[2].weight.clone()
    assert load_weights(model, file({"0.bias": torch.full((4,), 7.0)})) == 1
    assert torch.equal(model[0].bias, torch.full((4,), 7.0))
    assert torch.equal(model[2].weight, before)


def test_names_that_the_model_does_not_have_are_shown_not_skipped(model, file):
    path = file({f"layer{i}": torch.zeros(1) for i in range(7)})
    with pytest.raises(ConfigError, match=r"unknown to the model: layer0.* and 2 more"):
        load_weights(model, path)


def test_a_wrong_shape_is_refused_and_nothing_is_loaded(model, file):
    before = model[0].bias.clone()
    path = file({"0.bias": torch.zeros(4), "2.bias": torch.zeros(3)})
    with pytest.raises(ConfigError, match=r"2\.bias is \(3,\), expected \(2,\)"):
        load_weights(model, path)
    assert torch.equal(model[0].bias, before)


def test_another_kind_of_file_is_refused(model, tmp_path):
    (tmp_path / "model.pt").write_bytes(b"PK\x03\x04 a pickle")
    with pytest.raises(RunError, match=r"model\.pt is not a safetensors file"):
        load_weights(model, tmp_path / "model.pt")


def test_a_run_starts_from_the_weights_of_another(finished, make_job):
    first = finished(seed=1)
    path = first.folder.path / "model.safetensors"
    job = make_job(seed=2, weights=str(path))
    loaded = job.parts.whole.state_dict()
    assert all(torch.equal(loaded[k], v) for k, v in tensors.load(path).items())


@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_a_frozen_backbone_keeps_the_weights_it_was_given(finish, finished, topology):
    path = str(finished(seed=1).folder.path / "model.safetensors")
    frozen = finish(weights=path, freeze_backbone=True, topology=topology)
    before = tensors.load(path)
    after = tensors.load(frozen.folder.path / "model.safetensors")
    kept = {name for name in before if torch.equal(before[name], after[name])}
    assert kept == {n for n in before if n.startswith(("conv2", "fc1"))}


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_a_frozen_client_keeps_head_and_tail_and_trains_its_objectives(
    finish, finished, heads
):
    path = str(finished(seed=1).folder.path / "model.safetensors")
    noise = {"codec": "raw", "objective": ("shredder:0.1,tensors=2",)}
    frozen = {"freeze_client": True, "freeze_backbone": True}
    job = finish(weights=path, heads=heads, **frozen, **noise).job
    before, after = tensors.load(path), job.parts.whole.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    side = job.trainer.clients[1].side
    assert [n for n, p in side.modules.named_parameters() if p.requires_grad] == [
        "objectives.shredder.noise"
    ]
    assert not side.modules["head"].training
    began = build(job.experiment).trainer.clients[1].side.state()
    name = "objectives.shredder.noise"
    assert not torch.equal(side.state()[name], began[name])


def test_noise_for_a_network_that_trains_is_refused(make_job):
    with pytest.raises(ConfigError, match="stays as it is: give its --weights"):
        make_job(codec="raw", objective=("shredder",))
