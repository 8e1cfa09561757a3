"""What lightsplit-b and fsq share."""

import copy

import pytest
import torch

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import CodecError, ConfigError
from lightsplit.formats import FORMATS, WireFormats
from lightsplit.protocol import CodeMessage, StepId, Wire

SHAPE, TOKENS = (4, 3, 3), (5, 12)
AT = StepId(client=2, step=7)
every_codec = pytest.mark.parametrize("name", ["fsq", "lightsplit-b"])


def make(name, shape=SHAPE, **options):
    return CODECS.create(name, shape=shape, **options)


@pytest.mark.parametrize("form", FORMATS.names())
@pytest.mark.parametrize("bits", [1, 7, 16])
@pytest.mark.parametrize("rows", [1, 5, 64])
def test_a_message_carries_k_bits_per_sample_in_every_format(form, bits, rows):
    wire = Wire(make("lightsplit-b", bits=bits), formats=WireFormats(form))
    code = wire.codec.encoder(torch.randn(rows, *SHAPE))
    message = wire.write_code(AT, code)
    assert message.payload_bytes == wire.layout("code", rows).code_bytes
    assert 0 <= 8 * message.payload_bytes - rows * bits <= 8
    assert torch.equal(wire.read_code(message).values, code.values)


@every_codec
@pytest.mark.parametrize("form", FORMATS.names())
def test_the_code_gradient_travels_in_any_format(name, form):
    wire = Wire(make(name), formats=WireFormats(form))
    gradient = torch.randn(6, wire.codec.code_size)
    message = wire.write_code_gradient(AT, gradient)
    got = wire.read_code_gradient(message, gradient)
    assert (got - gradient).abs().max() < 0.5
    assert got.shape == gradient.shape


@every_codec
def test_each_token_of_a_sequence_is_coded_by_itself(name):
    codec = make(name, TOKENS, per_token=True, hidden=9)
    codec.encoder.eval()
    codec.decoder.eval()
    activation = torch.randn(3, *TOKENS)
    code = codec.encoder(activation)
    assert code.values.shape == (3, codec.code_size)
    changed = activation.clone()
    changed[:, 2] = torch.randn(3, TOKENS[1])
    per_token = (3, TOKENS[0], -1)
    same = code.values.view(per_token) == codec.encoder(changed).values.view(per_token)
    assert bool(same[:, [0, 1, 3, 4]].all())
    assert codec.decoder(code).shape == activation.shape


@every_codec
def test_a_fixed_lift_has_no_weights_and_is_drawn_from_the_seed(name):
    codec, again = (make(name, lift="fixed", seed=seed) for seed in (3, 3))
    assert not list(codec.decoder.parameters())
    assert not codec.has_trained_lift
    assert codec.fingerprint == again.fingerprint != ""
    code = codec.encoder(torch.randn(4, *SHAPE))
    assert torch.equal(codec.decoder(code), again.decoder(code))
    assert codec.decoder(code).shape == (4, *SHAPE)


@every_codec
def test_a_linear_lift_is_one_trained_map_straight_into_the_backbone(name):
    codec = make(name, lift="linear")
    assert codec.has_trained_lift
    codec.decoder.eval()
    codes = [torch.randn(4, codec.code_size) for _ in range(2)]
    lifted, other, both, zero = (
        codec.decoder(Code(some))
        for some in (*codes, sum(codes), torch.zeros(4, codec.code_size))
    )
    torch.testing.assert_close(both + zero, lifted + other)
    lifted.sum().backward()
    assert all(one.grad.abs().sum() > 0 for one in codec.decoder.parameters())
    sizes = [one.numel() for one in codec.decoder.parameters()]
    assert sizes == [36 * codec.code_size, 36]


@every_codec
def test_weights_and_running_statistics_belong_to_the_client(name):
    encoder = make(name).encoder
    names = set(encoder.state_dict())
    assert {"map.weight", "norm.running_mean", "norm.running_var"} <= names
    encoder(torch.randn(8, *SHAPE) + 5)
    assert encoder.norm.running_mean.abs().sum() > 0


@every_codec
def test_a_single_sample_is_normed_by_the_samples_before_it(name):
    encoder = make(name).encoder
    encoder(torch.randn(50, *SHAPE))
    statistics = copy.deepcopy(encoder.norm.state_dict())
    alone = torch.randn(1, *SHAPE)
    latent = encoder.latent(alone)
    torch.testing.assert_close(encoder.eval().latent(alone), latent)
    assert encoder.norm.running_mean.equal(statistics["running_mean"])


@every_codec
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"lift": "leaned"}, "did you mean 'learned'"),
        ({"hidden": 0}, "hidden must be from 1"),
        ({"per_token": True, "shape": (7,)}, "tokens, features"),
    ],
)
def test_options_out_of_range_are_refused(name, options, reason):
    with pytest.raises(ConfigError, match=reason):
        make(name, **options)


def test_a_fixed_lift_cannot_start_from_more_values_than_there_are():
    with pytest.raises(ConfigError, match="at most 36 values, got 37"):
        make("lightsplit-b", bits=37, lift="fixed")
    assert make("lightsplit-b", bits=37).code_size == 37


def test_labels_of_another_number_of_samples_are_refused():
    wire = Wire(make("lightsplit-b", bits=1))
    written = wire.write_code(AT, Code(torch.ones(9, 1)), torch.zeros(9)).code
    with pytest.raises(Exception, match="expected 9 labels"):
        wire.read_code(CodeMessage(0, 0, written, torch.zeros(10)))


def test_a_code_without_an_end_is_refused_by_the_wire():
    wire = Wire(make("lightsplit-b", bits=5))
    with pytest.raises(CodecError, match="end mark"):
        wire.read_code(CodeMessage(0, 0, Code(torch.zeros(3, dtype=torch.uint8))))
