"""The zoo's parts have exactly the sizes of the paper's table of partitions."""

import pytest
import torch

from lightsplit.codecs import CODECS
from lightsplit.errors import ConfigError, UnknownNameError
from lightsplit.models import CUTS, MODELS
from lightsplit.splitting import merge

pytestmark = pytest.mark.slow

# Table "Model partitions": L1H, L2H, backbone, tail, activation.
PARTITIONS = {
    ("resnet18", 10): (9_536, 83_520, 11_166_976, 5_130, (64, 8, 8)),
    ("resnet18", 100): (9_536, 83_520, 11_166_976, 51_300, (64, 8, 8)),
    ("simplecnn", 10): (520, 4_160, 435_162, 5_130, (20, 12, 12)),
    ("micronnet", 43): (824, 8_451, 411_192, 12_943, (29, 14, 14)),
}
LEVELS = ("l1", "l2")
EVERY_CUT = [(model, cut) for model in MODELS.names() for cut in CUTS[model].names]

# The same table: model, classes, hidden width, lift-back at ratio 8.
LIFT_BACKS = [
    ("resnet18", 10, 512, 2_364_928),
    ("resnet18", 100, 2_048, 9_447_424),
    ("micronnet", 43, 128, 824_500),
    ("simplecnn", 10, 128, 417_984),
]


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(("model", "classes"), PARTITIONS)
@pytest.mark.parametrize("cut", LEVELS)
def test_the_parts_have_as_many_parameters_as_the_paper_says(model, classes, cut):
    l1, l2, backbone, tail, _ = PARTITIONS[model, classes]
    parts = MODELS.create(model, cut=cut, classes=classes).split()
    assert parameters(parts.head) == (l1 if cut == "l1" else l2)
    assert parameters(parts.backbone) == backbone
    assert parameters(parts.tail) == tail


@pytest.mark.parametrize(("model", "classes"), PARTITIONS)
@pytest.mark.parametrize("cut", LEVELS)
def test_the_activation_has_the_shape_of_the_paper(model, classes, cut):
    zoo = MODELS.create(model, cut=cut, classes=classes)
    images = torch.rand(2, *zoo.input_shape)
    assert zoo.split().head(images).shape[1:] == PARTITIONS[model, classes][-1]


@pytest.mark.parametrize(("model", "classes", "hidden", "count"), LIFT_BACKS)
def test_the_lift_back_has_as_many_parameters_as_the_paper_says(
    model, classes, hidden, count
):
    shape = PARTITIONS[model, classes][-1]
    codec = CODECS.create(
        "lightsplit-l", shape=shape, ratio=8, hidden=hidden, projection="dct"
    )
    assert parameters(codec.decoder) == count


@pytest.mark.parametrize(("model", "cut"), EVERY_CUT)
def test_every_model_splits_and_merges_without_changing_its_outputs(model, cut):
    zoo = MODELS.create(model, cut=cut, classes=5)
    images = torch.rand(3, *zoo.input_shape)
    parts = zoo.split()
    zoo.module.eval()
    expected = zoo.module(images)
    assert expected.shape == (3, 5)
    torch.testing.assert_close(parts.tail(parts.backbone(parts.head(images))), expected)
    torch.testing.assert_close(merge(parts)(images), expected)


@pytest.mark.parametrize("model", ["micronnet", "resnet18", "simplecnn", "tinycnn"])
def test_both_cuts_send_the_same_shape_and_share_the_backbone(model):
    shallow, deep = (MODELS.create(model, cut=cut, classes=5).split() for cut in LEVELS)
    images = torch.rand(2, *MODELS.create(model, classes=5).input_shape)
    assert shallow.head(images).shape == deep.head(images).shape
    assert list(shallow.backbone.state_dict()) == list(deep.backbone.state_dict())


@pytest.mark.parametrize("model", MODELS.names())
def test_an_unknown_cut_is_refused_with_the_model_s_own(model):
    known = ", ".join(CUTS[model].names)
    with pytest.raises(ConfigError, match=f"unknown cut 'zz'; known: {known}"):
        MODELS.create(model, cut="zz")


@pytest.mark.parametrize("model", MODELS.names())
def test_a_model_is_cut_at_its_default_unless_told_otherwise(model):
    assert CUTS[model].default in CUTS[model].names
    named = MODELS.create(model, cut=CUTS[model].default)
    assert MODELS.create(model).head_until == named.head_until


def test_an_unknown_model_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="did you mean 'resnet18'"):
        MODELS.create("resnet81")


def test_the_zoo_holds_these_models():
    victims = ["mnistnet", "mobilenet", "resnet20"]
    papers_own = ["micronnet", "resnet18", "simplecnn", "tinycnn"]
    assert MODELS.names() == sorted(victims + papers_own)
