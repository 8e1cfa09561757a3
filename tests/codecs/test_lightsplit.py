"""The two LightSplit codecs."""

import pytest
import torch

from lightsplit.codecs import CODECS, Code
from lightsplit.codecs.projections import PROJECTIONS
from lightsplit.errors import ConfigError, UnknownNameError

both = pytest.mark.parametrize("name", ["lightsplit-f", "lightsplit-l"])
every_projection = pytest.mark.parametrize("projection", PROJECTIONS.names())


def make(name="lightsplit-f", shape=(6, 4, 2), ratio=4, **options):
    return CODECS.create(name, shape=shape, ratio=ratio, **options)


@every_projection
def test_coding_twice_is_coding_once(projection):
    codec = make(projection=projection)
    once = codec.decoder(codec.encoder(torch.randn(5, 6, 4, 2)))
    twice = codec.decoder(codec.encoder(once))
    torch.testing.assert_close(twice, once, atol=1e-5, rtol=0)


@every_projection
def test_the_lost_part_is_orthogonal_to_the_kept_part(projection):
    codec = make(projection=projection)
    activation = torch.randn(1, 6, 4, 2)
    lifted = codec.decoder(codec.encoder(activation))
    assert abs(((activation - lifted) * lifted).sum()) < 1e-4


def test_in_one_process_both_sides_hold_one_projection():
    codec = make("lightsplit-f")
    assert codec.encoder.projection is codec.decoder.projection


@every_projection
def test_sides_of_two_processes_work_together(projection):
    client, server = make(projection=projection), make(projection=projection)
    activation = torch.randn(5, 6, 4, 2)
    code = client.encoder(activation)
    assert client.fingerprint == server.fingerprint
    assert torch.equal(server.decoder(code), client.decoder(code))


@both
def test_both_codecs_send_the_same_code(name):
    activation = torch.randn(5, 6, 4, 2)
    values = make(name).encoder(activation).values
    assert torch.equal(values, make().encoder(activation).values)


@pytest.mark.parametrize(
    ("size", "code_size", "hidden", "parameters"),
    [
        (4096, 512, 512, 2_364_928),
        (4096, 512, 2048, 9_447_424),
        (5684, 710, 128, 824_500),
        (2880, 360, 128, 417_984),
    ],
)
def test_the_trained_decoder_is_as_large_as_the_papers(
    size, code_size, hidden, parameters
):
    codec = make("lightsplit-l", (size,), 8, hidden=hidden, projection="dct")
    assert codec.code_size == code_size
    assert sum(p.numel() for p in codec.decoder.parameters()) == parameters
    assert not list(codec.encoder.parameters())


def test_the_hidden_layer_has_128_values_by_default():
    first = make("lightsplit-l").decoder.layers[0]
    assert first.out_features == 128


def test_the_trained_weights_come_from_the_callers_generator():
    torch.manual_seed(1)
    first = make("lightsplit-l", seed=0).decoder.state_dict()
    torch.manual_seed(1)
    second = make("lightsplit-l", seed=9).decoder.state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_the_trained_decoder_takes_a_single_sample_once_training_is_over():
    decoder = make("lightsplit-l").decoder.eval()
    assert decoder(Code(torch.randn(1, 12))).shape == (1, 6, 4, 2)


def test_the_jl_scale_keeps_the_length_of_an_activation():
    codec = make(shape=(2048,), ratio=2, scale="jl")
    activation = torch.randn(1, 2048)
    kept = codec.encoder(activation).values.norm() / activation.norm()
    assert abs(kept - 1) < 0.1


@both
def test_impossible_options_are_refused(name):
    with pytest.raises(UnknownNameError, match="known: dct, haar, uniform"):
        make(name, projection="har")
    with pytest.raises(ConfigError, match="known: jl, orthonormal"):
        make(name, scale="none")
    with pytest.raises(ConfigError, match="leaves nothing of 48"):
        make(name, ratio=49)


def test_a_hidden_layer_without_values_is_refused():
    with pytest.raises(ConfigError, match="hidden"):
        make("lightsplit-l", hidden=0)
