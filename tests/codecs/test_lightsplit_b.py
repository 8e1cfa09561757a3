import pytest
import torch

from lightsplit.codecs import CODECS, LightSplitB
from lightsplit.errors import ConfigError


def test_the_code_is_the_sign_of_the_normed_map():
    codec = LightSplitB((3, 4), bits=5)
    activation = torch.randn(50, 3, 4)
    mapped = activation.flatten(1) @ codec.encoder.map.weight.T
    normed = (mapped - mapped.mean(0)) / mapped.std(0, correction=0)
    torch.testing.assert_close(
        codec.encoder.latent(activation), normed, atol=1e-3, rtol=1e-3
    )
    assert torch.equal(codec.encoder(activation).values, normed.sign())


def test_the_gradient_passes_where_the_latent_is_at_most_one():
    encoder = LightSplitB((4,), bits=3).encoder
    latent = torch.tensor([[-1.5, -1.0, -0.2], [0.0, 1.0, 1.01]], requires_grad=True)
    values = encoder.round(latent)
    assert values.tolist() == [[-1, -1, -1], [1, 1, 1]]
    weight = torch.randn(2, 3)
    (values * weight).sum().backward()
    passed = torch.tensor([[0, 1, 1], [1, 1, 0]])
    assert torch.equal(latent.grad, weight * passed)


@pytest.mark.parametrize("bits", [1, 2, 3, 16, 100])
@pytest.mark.parametrize("shape", [(6,), (3, 4), (2, 3, 3), (2, 2, 2, 2)])
def test_any_number_of_bits_codes_any_shape(bits, shape):
    codec = LightSplitB(shape, bits=bits, hidden=4)
    activation = torch.randn(6, *shape)
    assert codec.decoder(codec.encoder(activation)).shape == activation.shape
    assert codec.packed_bits == bits


@pytest.mark.parametrize("rows", [1, 6])
def test_a_hidden_layer_lets_bits_depend_on_more_than_a_plane(rows):
    codec = LightSplitB((2,), bits=1, encoder_hidden=16)
    assert codec.encoder(torch.randn(rows, 2)).values.shape == (rows, 1)
    corners = torch.tensor([[-1.0, -1], [1, 1], [-1, 1], [1, -1]])
    wanted = torch.tensor([[1.0], [1], [-1], [-1]])  # no plane separates these
    optimizer = torch.optim.Adam(codec.encoder.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        (codec.encoder.latent(corners) - wanted).square().mean().backward()
        optimizer.step()
    assert torch.equal(codec.encoder(corners).values, wanted)


@pytest.mark.parametrize("width", [-1, 70_000])
def test_impossible_widths_of_the_hidden_layer_are_refused(width):
    with pytest.raises(ConfigError, match=f"encoder_hidden must be .*, got {width}"):
        LightSplitB((4,), encoder_hidden=width)


@pytest.mark.parametrize("bits", [0, -1, 70_000])
def test_impossible_numbers_of_bits_are_refused(bits):
    with pytest.raises(ConfigError, match=f"bits must be from 1 to 65,536, got {bits}"):
        LightSplitB((4,), bits=bits)
    with pytest.raises(ConfigError, match="bits must be"):
        LightSplitB.check_options({"bits": bits})


def test_a_wrong_option_is_refused_with_the_near_one():
    with pytest.raises(ConfigError, match="did you mean 'bits'"):
        CODECS.create("lightsplit-b", shape=(4,), bit=3)


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({"bits": 16, "hidden": 512}, "lightsplit-b 16 bits"),
        ({"bits": 8, "hidden": 9}, "lightsplit-b 8 bits hidden=9"),
        ({"bits": 8, "encoder_hidden": 3}, "lightsplit-b 8 bits encoder_hidden=3"),
        (
            {"bits": 8, "per_token": True, "lift": "fixed"},
            "lightsplit-b 8 bits per token fixed lift",
        ),
        ({"bits": 8, "lift": "linear"}, "lightsplit-b 8 bits linear lift"),
    ],
)
def test_a_label_says_how_many_bits(options, label):
    assert LightSplitB.label(options) == label


def test_samples_with_equal_codes_cannot_be_told_apart_by_the_server():
    """An attack is a function of the code, so it names one sample per distinct code."""
    codec = LightSplitB((6,), bits=3)
    codes = codec.encoder(torch.randn(200, 6)).values
    distinct, which = codes.unique(dim=0, return_inverse=True)
    guess = {code: sample for sample, code in reversed(list(enumerate(which.tolist())))}
    named = sum(guess[code] == sample for sample, code in enumerate(which.tolist()))
    assert named == len(distinct) <= 8
