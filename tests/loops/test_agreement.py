import pytest
import torch

from lightsplit.errors import ConfigError, SplitError
from lightsplit.loops.agreement import agree


def test_both_ends_come_to_the_same_contract(kit):
    one, other = (agree(kit.make_network(seed), **kit.CUT) for seed in (0, 1))
    assert one.contract == other.contract
    assert one.contract.batch_size == 4


def test_every_setting_that_matters_is_in_the_contract(kit):
    plain = agree(kit.make_network(), **kit.CUT).contract
    for more in (
        {"codec": "lightsplit-f", "codec_options": {"ratio": 2}},
        {"wire": "int8"},
        {"seed": 1},
        {"clients": 2},
        {"batch_size": 9},
        {"norm_limit": 10.0},
    ):
        assert agree(kit.make_network(), **{**kit.CUT, **more}).contract != plain


def test_a_tail_is_needed(kit):
    with pytest.raises(ConfigError, match="expected tail_from"):
        agree(kit.make_network(), **{**kit.CUT, "tail_from": None})


def test_an_example_is_needed(kit):
    with pytest.raises(ConfigError, match=r"expected example=…, a batch of inputs"):
        agree(kit.make_network(), head_until="0", tail_from="5")


def test_an_example_without_tensors_is_refused(kit):
    with pytest.raises(SplitError, match=r"does not fit .* must be Tensor"):
        agree(kit.make_network(), **{**kit.CUT, "example": "text"})


def test_the_model_keeps_its_mode(kit):
    network = kit.make_network().train()
    agree(network, **kit.CUT)
    assert all(module.training for module in network.modules())
    assert torch.equal(network[3].running_mean, torch.zeros(6))
