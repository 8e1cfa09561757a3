"""Where the server's modules are. Hooks run here, between modules on one CPU."""

import sys

import pytest
import torch

import lightsplit
from lightsplit.errors import ConfigError, MissingExtraError
from lightsplit.loops.placing import place

MAPS = {
    "everything": {"": "cpu"},
    "module by module": {"2": "cpu", "3": torch.device("cpu")},
    "the whole model's, with the client's": {str(n): "cpu" for n in range(6)},
}


def trained(kit, network, **more):
    host = lightsplit.host(network, optimizer=kit.ADAM, **kit.CUT, **more)
    model = lightsplit.connect(kit.make_network(), server=host, **kit.CUT)
    kit.train(model, kit.ADAM(model.parameters()), 4)
    model.eval()
    return host.server.state(), model(kit.batch(9)[0])


@pytest.mark.parametrize("device_map", MAPS.values(), ids=MAPS.keys())
def test_a_map_of_one_device_equals_none(kit, device_map):
    plain, expected = trained(kit, kit.make_network())
    placed, found = trained(kit, kit.make_network(), device_map=device_map)
    assert torch.equal(found, expected)
    assert placed.keys() == plain.keys()
    assert all(torch.equal(placed[name], plain[name]) for name in plain)


def test_modules_go_where_the_map_says_and_the_clients_stay(kit):
    network = kit.make_network()
    before = {name: one.device for name, one in network.named_parameters()}
    parts = lightsplit.split(network, **kit.CUT)
    place(parts.backbone, network, {"0": "cpu", "2": "meta", "3": "meta", "5": "cpu"})
    moved = {
        name.split(".")[0]
        for name, one in network.named_parameters()
        if one.device != before[name]
    }
    assert moved == {"2", "3"}


@pytest.mark.parametrize(
    ("device_map", "reason"),
    [
        ({"": "cpu", "7": "cpu"}, "got '7', which the model does not have"),
        (
            {"2": "cpu"},
            "every module of the server in the device map, got none for '3'",
        ),
        ({"2": "cpu", "3": "disk"}, "got cpu, disk: weights that wait"),
        ({"2": "cpu", "3": "meta"}, "got cpu, meta: weights that wait"),
        ({"2": 998, "3": 999}, "the device map cannot be followed: "),
        ({"": "nowhere"}, "the device map cannot be followed: .*nowhere"),
    ],
)
def test_a_map_that_does_not_fit_is_refused_in_one_sentence(kit, device_map, reason):
    network = kit.make_network()
    with pytest.raises(ConfigError, match=reason) as caught:
        lightsplit.host(network, optimizer=kit.ADAM, **kit.CUT, device_map=device_map)
    assert "\n" not in str(caught.value)
    assert kit.same(network, kit.make_network())


def test_without_accelerate_the_line_that_installs_it_is_shown(kit, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lightsplit\[devices\]'"):
        lightsplit.host(
            kit.make_network(), optimizer=kit.ADAM, **kit.CUT, device_map={"": "cpu"}
        )
