"""SDAR's networks have the released sizes, and TensorFlow's padding."""

import pytest
import torch

from lightsplit.attacks.lifts import learned_lift
from lightsplit.attacks.sdar_layers import SameConv2d
from lightsplit.attacks.sdar_networks import (
    Cut,
    make_activation_discriminator,
    make_cut,
    make_decoder,
    make_image_discriminator,
)
from lightsplit.codecs import CODECS, Code
from lightsplit.errors import AuditError

IMAGE = (3, 32, 32)
# Level and classes: weights of decoder, discriminators of activations and of images.
RELEASED = {
    (4, 0): (19_107, 2_163_649, 523_009),
    (4, 10): (32_951, 2_177_781, 576_309),
    (7, 0): (84_003, 2_144_897, 523_009),
    (7, 10): (88_343, 2_149_813, 576_309),
}
SHAPES = {3: (16, 32, 32), 4: (32, 16, 16), 7: (64, 8, 8), 9: (64, 8, 8)}


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(("level", "classes"), RELEASED)
def test_every_network_has_as_many_weights_as_the_released_one(level, classes):
    cut = Cut(SHAPES[level], IMAGE, level, classes)
    makers = (make_decoder, make_activation_discriminator, make_image_discriminator)
    assert tuple(parameters(make(cut)) for make in makers) == RELEASED[level, classes]


@pytest.mark.parametrize("level", SHAPES)
def test_a_decoder_gives_images_and_a_discriminator_one_logit(level):
    cut = Cut(SHAPES[level], IMAGE, level, classes=10, width=16)
    labels = torch.tensor([1, 2])
    activations = torch.rand(2, *SHAPES[level])
    images = make_decoder(cut)(activations, labels)
    assert images.shape == (2, *IMAGE)
    assert bool(((images >= 0) & (images <= 1)).all())
    assert make_activation_discriminator(cut)(activations, labels).shape == (2, 1)
    assert make_image_discriminator(cut)(images, labels).shape == (2, 1)


def test_a_network_that_is_told_labels_heeds_them():
    cut = Cut((6, 8, 8), (1, 8, 8), 3, classes=10, width=16)
    decoder, activations = make_decoder(cut).eval(), torch.rand(1, 6, 8, 8)
    ones, twos = (decoder(activations, torch.tensor([n])) for n in (1, 2))
    assert not torch.equal(ones, twos)


@pytest.mark.parametrize("size", [8, 32])
def test_an_even_size_and_stride_two_pad_only_below_and_to_the_right(size):
    convolution = SameConv2d(1, 1, 3, stride=2, bias=False)
    images = torch.rand(1, 1, size, size)
    padded = torch.zeros(1, 1, size + 1, size + 1)
    padded[..., :size, :size] = images
    expected = torch.nn.functional.conv2d(padded, convolution.weight, stride=2)
    assert torch.equal(convolution(images), expected)


@pytest.mark.parametrize(("size", "stride"), [(7, 2), (7, 1), (8, 1)])
def test_elsewhere_both_sides_are_padded(size, stride):
    convolution = SameConv2d(1, 1, 3, stride=stride, bias=False)
    images = torch.rand(1, 1, size, size)
    expected = torch.nn.functional.conv2d(
        images, convolution.weight, stride=stride, padding=1
    )
    torch.testing.assert_close(convolution(images), expected)


@pytest.mark.parametrize("codec", ["lightsplit-f", "lightsplit-l"])
@pytest.mark.parametrize("projection", ["haar", "dct"])
def test_a_learned_lift_starts_as_the_lift_by_the_projection(codec, projection):
    made = CODECS.create(codec, shape=(4, 3, 3), ratio=4, projection=projection)
    codes = torch.rand(5, made.code_size)
    lifted = made.encoder.projection.lift(codes).view(5, 4, 3, 3)
    torch.testing.assert_close(learned_lift(made)(codes), lifted)


def test_a_learned_lift_turns_few_channels_into_all():
    codec = CODECS.create("learned-1x1", shape=(8, 3, 3), ratio=4)
    code = codec.encoder(torch.rand(5, 8, 3, 3))
    assert learned_lift(codec)(code.values).shape == (5, 8, 3, 3)


@pytest.mark.parametrize(("codec", "ratio"), [("raw", 1), ("topk", 4)])
def test_a_code_that_the_server_reads_as_an_activation_needs_no_lift(codec, ratio):
    made = CODECS.create(codec, shape=(4, 3, 3), ratio=ratio)
    code = made.encoder(torch.rand(2, 4, 3, 3))
    assert isinstance(code, Code)
    assert learned_lift(made) is None


@pytest.mark.parametrize(("size", "level"), [(32, 3), (16, 4), (8, 7)])
def test_the_level_of_any_model_is_one_that_shrinks_images_as_much(size, level):
    assert make_cut((5, size, size), IMAGE).level == level


@pytest.mark.parametrize("shape", [(512,), (5, 4, 4), (5, 12, 12), (5, 16, 8)])
def test_an_activation_that_cannot_be_doubled_to_an_image_is_refused(shape):
    with pytest.raises(AuditError, match=r"expected \(channels, 32, 32\).*got \("):
        make_cut(shape, IMAGE)
