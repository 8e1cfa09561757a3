"""The contract of every codec. A new codec adds one line to OPTIONS."""

import inspect
import math

import pytest
import torch
from torch import nn

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import CodecError, ConfigError
from lightsplit.seeding import scope

SHAPE = (8, 4, 3)
OPTIONS = {
    "bottlenet": {"ratio": 4},
    "c3": {"ratio": 4},
    "franken": {"channels": 6, "hidden": 5},
    "fsq": {"values": 6, "levels": 5, "hidden": 7},
    "learned-1x1": {"ratio": 4},
    "lightsplit-b": {"bits": 12, "hidden": 7},
    "lightsplit-f": {"ratio": 4, "projection": "dct"},
    "lightsplit-l": {"ratio": 4, "hidden": 5},
    "mask-sparse": {"ratio": 8, "mask_bits": 3, "signed": True},
    "none": {},
    "randtopk": {"ratio": 4},
    "raw": {},
    "splitfc": {"bits_per_value": 4.0, "gradient_bits": 3.0, "reduction": 2.0},
    "topk": {"ratio": 4},
}

every_codec = pytest.mark.parametrize("name", CODECS.names())
shrinking_codec = pytest.mark.parametrize(
    "name",
    [
        name
        for name in CODECS.names()
        if "ratio" in inspect.signature(CODECS.get(name)).parameters
    ],
)


@pytest.fixture(params=CODECS.names())
def codec(request):
    return CODECS.create(request.param, shape=SHAPE, seed=3, **OPTIONS[request.param])


def received(code):
    """The code as the other side gets it: numbers without a graph."""
    return Code(code.values.detach().clone().requires_grad_(), code.side)


def encoded(codec, activation):
    """The code of an activation; every call draws the same numbers."""
    with scope(0, "encoder"):
        return codec.encoder(activation)


def gradients_of(module):
    return [parameter.grad for parameter in module.parameters()]


def test_a_decoded_activation_has_the_shape_of_the_original(codec):
    activation = torch.randn(5, *SHAPE)
    assert codec.decoder(codec.encoder(activation)).shape == activation.shape


def test_the_gradient_reaches_the_activation(codec):
    activation = torch.randn(5, *SHAPE, requires_grad=True)
    codec.decoder(codec.encoder(activation)).square().sum().backward()
    assert activation.grad.abs().sum() > 0


@pytest.mark.parametrize("batch_size", [1, 2, 5, 16])
def test_the_layout_matches_the_encoders_code(codec, batch_size):
    code = codec.encoder(torch.randn(batch_size, *SHAPE))
    layout = codec.layout(batch_size)
    layout.check(code)
    assert layout.code_bytes == sum(t.nbytes for t in (code.values, *code.side))
    assert layout.gradient_bytes == code.values.nbytes
    if codec.is_sample_wise:
        assert layout.values.elements == batch_size * codec.code_size
    assert codec.samples(code) == batch_size


def test_a_received_code_is_decoded_without_the_encoders_graph(codec):
    code = received(codec.encoder(torch.randn(5, *SHAPE)))
    codec.decoder(code).square().sum().backward()
    assert code.values.grad.shape == code.values.shape


def test_a_step_in_two_halves_gives_the_gradients_of_the_whole_step(codec):
    activation = torch.randn(5, *SHAPE, requires_grad=True)
    weight = torch.randn(5, *SHAPE)
    (codec.decoder(encoded(codec, activation)) * weight).sum().backward()
    whole = activation.grad.clone()
    activation.grad = None
    sent = encoded(codec, activation)
    arrived = received(sent)
    (codec.decoder(arrived) * weight).sum().backward()
    sent.values.backward(arrived.values.grad)
    torch.testing.assert_close(activation.grad, whole, atol=1e-5, rtol=1e-4)


def test_the_gradient_reaches_every_weight(codec):
    activation = torch.randn(5, *SHAPE, requires_grad=True)
    (codec.decoder(codec.encoder(activation)) * torch.randn(5, *SHAPE)).sum().backward()
    for side in (codec.encoder, codec.decoder):
        assert all(gradient is not None for gradient in gradients_of(side))


def test_the_side_information_has_no_gradient(codec):
    code = codec.encoder(torch.randn(5, *SHAPE, requires_grad=True))
    assert code.values.requires_grad
    assert not any(tensor.requires_grad for tensor in code.side)


def test_only_weights_and_running_statistics_are_saved(codec):
    for side in (codec.encoder, codec.decoder):
        weights = {name for name, _ in side.named_parameters()}
        statistics = {
            f"{path}.{name}"
            for path, module in side.named_modules()
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d)
            for name, _ in module.named_buffers()
        }
        assert set(side.state_dict()) == weights | statistics


def test_the_decoded_activation_may_be_changed_in_place(codec):
    code = received(codec.encoder(torch.randn(5, *SHAPE)))
    nn.ReLU(inplace=True)(codec.decoder(code)).sum().backward()
    assert code.values.grad is not None


def test_a_sample_wise_code_has_a_row_for_each_sample(codec):
    if not codec.is_sample_wise:
        pytest.skip("it works on the batch as a whole")
    activation = torch.randn(5, *SHAPE)
    codec.encoder.eval()
    together, alone = codec.encoder(activation), codec.encoder(activation[2:3])
    torch.testing.assert_close(together.values[2:3], alone.values)


def test_the_layout_shrinks_activations_by_the_ratio_asked_for(codec):
    if codec.packed_bits:
        pytest.skip("its size is a number of bits")
    ratio = OPTIONS[codec.name].get("ratio", 1)
    assert codec.ratio == ratio
    assert codec.layout(16).values.elements * ratio == 16 * math.prod(SHAPE)


@pytest.mark.parametrize("batch_size", [1, 2, 5, 16])
def test_a_packed_code_has_its_layout_and_is_unpacked_exactly(codec, batch_size):
    code = codec.encoder(torch.randn(batch_size, *SHAPE))
    packed = codec.pack(code)
    codec.packed_layout(batch_size).check(packed)
    if codec.is_sample_wise:
        assert codec.packed_samples(packed.values) == batch_size
    unpacked = codec.unpack(packed)
    assert torch.equal(unpacked.values, code.values)
    assert all(map(torch.equal, unpacked.side, code.side))


@pytest.mark.parametrize("shape", [(8, 4, 3), (5, 8, 4, 4), (5, 96), ()])
def test_activations_of_another_shape_are_refused(codec, shape):
    with pytest.raises(CodecError, match=r"expected \(batch, 8, 4, 3\), got"):
        codec.encoder(torch.zeros(shape))


def test_codes_of_another_shape_are_refused(codec):
    with pytest.raises(CodecError, match="expect"):
        codec.decoder(Code(torch.zeros(2, 7)))


def test_the_two_sides_built_from_one_seed_agree_on_the_fingerprint(codec):
    again = CODECS.create(codec.name, shape=SHAPE, seed=3, **OPTIONS[codec.name])
    other = CODECS.create(codec.name, shape=SHAPE, seed=4, **OPTIONS[codec.name])
    assert again.fingerprint == codec.fingerprint
    assert (other.fingerprint == codec.fingerprint) == (codec.fingerprint == "")


@shrinking_codec
def test_an_unknown_option_is_refused_with_the_known_ones(name):
    with pytest.raises(ConfigError, match=r"'raito'; known: .*did you mean 'ratio'"):
        CODECS.create(name, shape=SHAPE, raito=4)


@shrinking_codec
def test_a_ratio_below_one_is_refused(name):
    for ratio in (0.5, 0, -2, float("nan")):
        with pytest.raises(ConfigError, match="ratio"):
            CODECS.create(name, shape=SHAPE, ratio=ratio)


@every_codec
@pytest.mark.parametrize("shape", [(), (8, 0, 3), (8, -4, 3), (8, 2.5, 3)])
def test_a_shape_without_values_is_refused(name, shape):
    with pytest.raises(ConfigError, match="shape"):
        CODECS.create(name, shape=shape)


@every_codec
def test_the_description_is_one_line(name):
    first = inspect.getdoc(CODECS.get(name)).splitlines()[0]
    assert first.endswith(".")
    assert len(first) <= 80
    assert CODECS.get(name).name == name
