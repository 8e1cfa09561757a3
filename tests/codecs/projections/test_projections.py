"""Laws that hold for every projection."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from lightsplit.codecs.projections import PROJECTIONS, SCALES
from lightsplit.errors import CodecError, ConfigError, UnknownNameError

every_projection = pytest.mark.parametrize("name", PROJECTIONS.names())
every_scale = pytest.mark.parametrize("scale", SCALES)


def make(name, size=24, code_size=6, seed=0, scale="orthonormal"):
    return PROJECTIONS.create(
        name, size=size, code_size=code_size, seed=seed, scale=scale
    )


def departure_from_orthonormality(projection):
    columns = projection.matrix()
    return (columns.T @ columns - torch.eye(projection.code_size)).abs().max()


def test_the_registered_names_are_these():
    assert PROJECTIONS.names() == ["dct", "haar", "uniform"]


@pytest.mark.parametrize("name", ["haar", "uniform"])
@pytest.mark.parametrize(("size", "code_size"), [(2880, 90), (5684, 177), (7, 7)])
def test_the_columns_of_a_dense_projection_are_orthonormal(name, size, code_size):
    assert departure_from_orthonormality(make(name, size, code_size)) < 1e-5


@pytest.mark.parametrize("size", [1, 2, 7, 64, 2880, 4096, 5684])
@pytest.mark.parametrize("ratio", [1000, 32, 8, 1])
def test_the_columns_of_the_dct_are_orthonormal_for_every_size(size, ratio):
    code_size = min(max(1, size // ratio), 720)
    assert departure_from_orthonormality(make("dct", size, code_size)) < 1e-5


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(PROJECTIONS.names()),
    size=st.integers(1, 70),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**63 - 1),
)
def test_columns_are_orthonormal_for_any_sizes_and_seed(name, size, share, seed):
    code_size = max(1, round(share * size))
    assert departure_from_orthonormality(make(name, size, code_size, seed)) < 1e-5


@every_projection
def test_a_projection_to_as_many_values_loses_nothing(name):
    projection = make(name, size=33, code_size=33)
    activation = torch.randn(5, 33)
    lifted = projection.lift(projection.project(activation))
    torch.testing.assert_close(lifted, activation, atol=1e-5, rtol=0)


@every_projection
@every_scale
def test_projecting_is_the_adjoint_of_lifting(name, scale):
    projection = make(name, scale=scale)
    activation = torch.randn(1, 24, dtype=torch.float64)
    code = torch.randn(1, 6, dtype=torch.float64)
    below = (projection.project(activation) * code).sum()
    above = (activation * projection.lift(code)).sum()
    torch.testing.assert_close(below, above, atol=1e-6, rtol=0)


@every_projection
@every_scale
def test_projecting_a_lifted_code_gives_the_code_times_the_squared_gain(name, scale):
    projection = make(name, scale=scale)
    code = torch.randn(5, 6)
    expected = code * (24 / 6 if scale == "jl" else 1)
    again = projection.project(projection.lift(code))
    torch.testing.assert_close(again, expected, atol=1e-5, rtol=0)


@every_projection
def test_the_jl_scale_multiplies_each_way_by_the_root_of_the_ratio(name):
    plain, scaled = make(name), make(name, scale="jl")
    gain = math.sqrt(24 / 6)
    activation, code = torch.randn(5, 24), torch.randn(5, 6)
    torch.testing.assert_close(
        scaled.project(activation), gain * plain.project(activation)
    )
    torch.testing.assert_close(scaled.lift(code), gain * plain.lift(code))


@every_projection
def test_projecting_is_multiplying_by_the_matrix(name):
    projection = make(name, scale="jl")
    activation = torch.randn(5, 24)
    torch.testing.assert_close(
        projection.project(activation), activation @ projection.matrix()
    )


@every_projection
@pytest.mark.parametrize("size", [9, 10])
def test_both_ways_can_be_differentiated_twice(name, size):
    projection = make(name, size=size, code_size=4)
    activation = torch.randn(2, size, dtype=torch.float64, requires_grad=True)
    code = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    for way, argument in ((projection.project, activation), (projection.lift, code)):
        assert gradcheck(way, (argument,))
        assert gradgradcheck(lambda x, way=way: way(x).pow(3), (argument,))


@every_projection
def test_the_gradient_of_projecting_is_the_lifted_gradient(name):
    projection = make(name)
    activation = torch.randn(5, 24, requires_grad=True)
    gradient = torch.randn(5, 6)
    projection.project(activation).backward(gradient)
    torch.testing.assert_close(activation.grad, projection.lift(gradient))


@every_projection
def test_the_same_seed_gives_the_same_directions_and_fingerprint(name):
    client, server = make(name, seed=7), make(name, seed=7)
    assert client.fingerprint == server.fingerprint
    assert torch.equal(client.matrix(), server.matrix())


@every_projection
@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"size": 25}, {"code_size": 5}, {"scale": "jl"}]
)
def test_any_change_changes_the_fingerprint(name, change):
    assert make(name).fingerprint != make(name, **change).fingerprint


def test_each_kind_has_its_own_fingerprint_of_64_hex_digits():
    prints = {make(name).fingerprint for name in PROJECTIONS.names()}
    assert len(prints) == len(PROJECTIONS.names())
    assert all(len(bytes.fromhex(fingerprint)) == 32 for fingerprint in prints)


@every_projection
def test_drawing_leaves_the_global_generator_alone(name):
    before = torch.get_rng_state()
    make(name)
    assert torch.equal(torch.get_rng_state(), before)


@every_projection
def test_nothing_is_trained_and_nothing_is_saved(name):
    projection = make(name)
    assert not list(projection.parameters())
    assert not projection.state_dict()


@every_projection
def test_the_drawn_tensors_move_with_the_module(name):
    projection = make(name).to("meta")
    assert {buffer.device.type for buffer in projection.buffers()} == {"meta"}


@every_projection
def test_two_sides_on_two_devices_can_share_it(name):
    projection = make(name)
    code = projection.project(torch.zeros(3, 24, device="meta"))
    assert code.device.type == projection.lift(code).device.type == "meta"
    assert projection.project(torch.zeros(3, 24)).device.type == "cpu"


@every_projection
def test_casting_the_module_keeps_it_working(name):
    projection, activation = make(name), torch.randn(3, 24)
    expected = projection.project(activation)
    again = projection.to(torch.float64).project(activation)
    torch.testing.assert_close(again, expected)


@every_projection
@pytest.mark.parametrize("code_size", [0, -1, 25])
def test_a_code_size_outside_the_size_is_refused(name, code_size):
    with pytest.raises(ConfigError, match=f"size=24, got {code_size}"):
        make(name, code_size=code_size)


@every_projection
def test_an_unknown_scale_is_refused_with_the_known_ones(name):
    with pytest.raises(ConfigError, match="'unit'; known: jl, orthonormal"):
        make(name, scale="unit")


def test_an_unknown_projection_is_refused_with_the_known_ones():
    with pytest.raises(UnknownNameError, match="known: dct, haar, uniform"):
        make("hadamard")


@every_projection
@pytest.mark.parametrize("shape", [(24,), (2, 23), (2, 6, 4)])
def test_rows_of_another_shape_are_refused(name, shape):
    with pytest.raises(CodecError, match=r"expects \(batch, 24\), got"):
        make(name).project(torch.zeros(shape))
    with pytest.raises(CodecError, match=r"expects \(batch, 6\), got"):
        make(name).lift(torch.zeros(shape))


@every_projection
def test_numbers_of_another_kind_are_refused(name):
    with pytest.raises(CodecError, match=r"float32 or float64, got torch\.int64"):
        make(name).project(torch.zeros(2, 24, dtype=torch.int64))
