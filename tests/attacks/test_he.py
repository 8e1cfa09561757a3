"""The attacks of He et al. and Ginver: published inversions, and the codec inside."""

import pytest
import torch
from torch import nn

from lightsplit.attacks import ATTACKS, equip
from lightsplit.attacks.inverse_networks import inverse_network
from lightsplit.codecs import CODECS
from lightsplit.errors import AuditError

pytestmark = pytest.mark.slow

# Rates for a tiny problem; the published ones are for many thousands of steps.
LITTLE = {
    "inverse-net": {"epochs": 2},
    "rmle": {"steps": 30},
    "ginver": {"steps": 30, "lr": 0.05},
}
MORE = {
    "inverse-net": {"epochs": 4, "lr": 0.02},
    "rmle": {"steps": 250},
    "ginver": {"steps": 200, "lr": 0.05},
}
FORMS = ("published", "adaptive")


def attacked(made, name, form, effort=MORE):
    attack = equip(ATTACKS.get(name), made.knowledge, form=form, **effort[name])
    return attack.reconstruct(made.view)


@pytest.mark.parametrize("name", MORE)
def test_on_a_raw_shallow_cut_it_beats_every_trivial_attacker(
    scene, trivial_error, name
):
    made = scene()
    assert made.error(attacked(made, name, "published")) < trivial_error(made)


@pytest.mark.parametrize("name", MORE)
def test_on_noise_it_beats_no_mean_image(scene, trivial_error, name):
    made = scene("lightsplit-f", ratio=4, noise=True)
    images = attacked(made, name, "adaptive", LITTLE).clamp(0, 1)
    assert made.error(images) > 0.98 * trivial_error(made, ("mean-image",))


@pytest.mark.parametrize("name", MORE)
def test_more_effort_does_not_make_it_worse(scene, name):
    made = scene()
    few, many = (
        made.error(attacked(made, name, "adaptive", effort))
        for effort in (LITTLE, MORE)
    )
    assert many < 1.05 * few


@pytest.mark.parametrize("name", ["rmle", "ginver"])
def test_with_the_codec_inside_it_gets_more_from_a_projected_code(scene, name):
    made = scene("lightsplit-f", ratio=4)
    published, adaptive = (made.error(attacked(made, name, form)) for form in FORMS)
    assert adaptive < 0.9 * published


@pytest.mark.parametrize(
    ("features", "image", "weights"),
    [
        ((64, 32, 32), (3, 32, 32), 64 * 3 * 9 + 3),  # conv11
        ((128, 16, 16), (3, 32, 32), 128 * 64 * 9 + 64 + 64 * 3 * 9 + 3),  # ReLU22
        (
            (128, 8, 8),
            (3, 32, 32),
            128 * 128 * 9 + 128 + 128 * 64 * 9 + 64 + 64 * 3 * 9 + 3,
        ),  # ReLU32
        ((20, 12, 12), (1, 28, 28), 20 * 64 * 9 + 64 + 64 * 25 + 1),  # 12, 24, 28
    ],
)
def test_the_network_has_the_released_layers_and_the_images_size(
    features, image, weights
):
    network = inverse_network("inverse-net", features, image)
    assert sum(weight.numel() for weight in network.parameters()) == weights
    assert network(torch.zeros(2, *features)).shape == (2, *image)


@pytest.mark.parametrize("name", ["inverse-net", "ginver"])
def test_features_that_are_no_map_are_refused(name):
    with pytest.raises(AuditError, match="choose an earlier cut"):
        ATTACKS.get(name).check_shapes((32,), (1, 8, 8))


def test_rmle_takes_features_of_any_shape(scene):
    made = scene(head=nn.Sequential(nn.Flatten(), nn.Linear(64, 48)))
    assert attacked(made, "rmle", "published").shape == made.truth.shape


@pytest.mark.parametrize("name", MORE)
@pytest.mark.parametrize("codec", ["lightsplit-l", "learned-1x1", "lightsplit-b"])
def test_every_kind_of_code_can_be_inverted_in_both_forms(scene, name, codec):
    ratio = {"ratio": None, "bits": 16} if codec == "lightsplit-b" else {"ratio": 4}
    made = scene(codec, **ratio)
    assert codec in CODECS.names()
    few = {"inverse-net": {"epochs": 1}, "rmle": {"steps": 2}, "ginver": {"steps": 2}}
    for form in FORMS:
        images = attacked(made, name, form, few)
        assert images.shape == made.truth.shape
        assert torch.isfinite(images).all()
