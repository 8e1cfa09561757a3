"""An attack cannot reach the images that it is to find."""

from dataclasses import fields, is_dataclass

import grimp
import pytest
import torch
from torch import nn

from lightsplit.attacks import ATTACKS
from lightsplit.codecs import Codec

FORBIDDEN = ("lightsplit.runtime", "lightsplit.transports", "lightsplit.data")


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("lightsplit", cache_dir=None)


@pytest.mark.parametrize("forbidden", FORBIDDEN)
def test_no_chain_of_imports_leads_from_an_attack_to_data(graph, forbidden):
    chain = graph.find_shortest_chain("lightsplit.attacks", forbidden, as_packages=True)
    assert chain is None


def test_the_check_would_find_a_chain_if_there_were_one(graph):
    graph.add_import(
        importer="lightsplit.attacks.trivial", imported="lightsplit.data.digits"
    )
    chain = graph.find_shortest_chain(
        "lightsplit.attacks", "lightsplit.data", as_packages=True
    )
    graph.remove_import(
        importer="lightsplit.attacks.trivial", imported="lightsplit.data.digits"
    )
    assert chain is not None


@pytest.mark.parametrize("codec", ["raw", "lightsplit-f", "topk"])
def test_a_view_holds_no_tensor_of_an_images_size(scene, codec):
    made = scene(codec, ratio=1 if codec == "raw" else 4)
    found = list(tensors_in(made.view, seen=set()))
    assert found
    assert not any(tensor.shape[1:] == made.truth.shape[1:] for tensor in found)


def test_the_walk_would_find_an_image_if_there_were_one(scene):
    made = scene()
    found = tensors_in((made.view, {"hidden": [made.truth]}), seen=set())
    assert any(tensor.shape[1:] == made.truth.shape[1:] for tensor in found)


def test_every_attack_states_who_could_do_it_and_what_it_takes():
    for name in ATTACKS.names():
        attack = ATTACKS.get(name)
        assert attack.name == name
        assert attack.threat_model
        assert attack.cost


def tensors_in(thing, *, seen):
    """Yield every tensor that can be reached from ``thing`` by its attributes."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, torch.Tensor):
        yield thing
        return
    for part in parts_of(thing):
        yield from tensors_in(part, seen=seen)


def parts_of(thing):
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, list | tuple | set):
        return list(thing)
    if is_dataclass(thing):
        return [getattr(thing, field.name) for field in fields(thing)]
    if isinstance(thing, nn.Module | Codec):
        return list(vars(thing).values())
    return []
