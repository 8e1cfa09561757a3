import copy
import inspect
import logging

import pytest
import torch
from torch import nn

import lightsplit
from lightsplit.errors import ConfigError
from lightsplit.loops.position import Position


def test_the_forward_pass_has_the_models_own_parameters(kit):
    _, model = kit.make_ends()
    assert list(inspect.signature(model.forward).parameters) == ["input"]
    assert type(model).__name__ == "ConnectedSequential"


class WithConfig(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 6)
        self.middle = nn.Linear(6, 6)
        self.last = nn.Linear(6, 3)
        self.config = {"is_decoder": False}

    def generate(self):
        """Do what takes the whole model."""

    def forward(self, x):
        return self.last(self.middle(self.first(x)))


def test_values_of_the_model_are_there_for_trainers_and_its_methods_are_not(kit):
    cut = {**kit.CUT, "head_until": "first", "tail_from": "last"}
    _, model = kit.make_ends(WithConfig(), cut=cut)
    assert model.config == {"is_decoder": False}
    assert not hasattr(model, "generate")
    with pytest.raises(AttributeError, match="ConnectedWithConfig' object has no"):
        _ = model.unknown


def test_a_checkpoint_takes_both_halves_back(kit, tmp_path):
    network = kit.make_network()
    _, model = kit.make_ends(network, folder=tmp_path)
    optimizer = kit.ADAM(model.parameters())
    kit.train(model, optimizer, 2)
    mine = {name: one.clone() for name, one in model.state_dict().items()}
    rates = copy.deepcopy(optimizer.state_dict())
    kept = {name: one.clone() for name, one in network.state_dict().items()}
    kit.train(model, optimizer, 3, start=2)
    after = {name: one.clone() for name, one in network.state_dict().items()}

    model.load_state_dict(mine)
    optimizer.load_state_dict(rates)
    kit.train(model, optimizer, 3, start=2)
    assert Position.of(model.position).updates == 5
    again = network.state_dict()
    assert all(torch.equal(again[name], after[name]) for name in after)
    assert not all(torch.equal(again[name], kept[name]) for name in kept)


def test_a_norm_of_zero_does_not_mean_that_nothing_is_clipped(kit):
    with pytest.raises(ConfigError, match="clip_norm: expected more than 0, got 0"):
        lightsplit.host(kit.make_network(), optimizer=kit.ADAM, clip_norm=0, **kit.CUT)


def test_a_checkpoint_of_another_run_begins_anew(kit, caplog):
    _, first = kit.make_ends()
    kit.train(first, kit.ADAM(first.parameters()), 2)
    host, second = kit.make_ends()
    second.load_state_dict(first.state_dict())
    with caplog.at_level(logging.WARNING):
        kit.train(second, kit.ADAM(second.parameters()), 1)
    assert "the checkpoint is of another run" in caplog.text
    assert host.loops.applied() == {"owner": 1}


@pytest.mark.parametrize("kind", [str, lightsplit.Secret])
def test_the_secret_may_be_given_or_kept_in_a_file(kit, tmp_path, kind):
    given = tmp_path / "secret" if kind is str else lightsplit.Secret(3)
    network = kit.make_network()
    host = lightsplit.host(network, optimizer=kit.ADAM, **kit.CUT)
    lightsplit.connect(network, server=host, secret=given, **kit.CUT)
    assert (tmp_path / "secret").exists() == (kind is str)
