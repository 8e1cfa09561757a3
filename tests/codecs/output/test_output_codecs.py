"""The contract of every codec of the back cut."""

import pytest
import torch
from torch import nn

from lightsplit.codecs import OUTPUT_CODECS, Code, TensorSpec
from lightsplit.codecs.output import narrowed_tail, widened_tail
from lightsplit.errors import CodecError, ConfigError

D, K, C = 32, 6, 4
SIZES = {"projection": K, "linear": K}
shortening = pytest.mark.parametrize("name", SIZES)


def make(name, size=None, shape=(D,)):
    size = SIZES.get(name) if size is None else size
    sized = {} if size is None else {"size": size}
    return OUTPUT_CODECS.create(name, shape=shape, seed=3, classes=C, **sized)


@pytest.fixture(params=OUTPUT_CODECS.names())
def codec(request):
    return make(request.param)


def test_the_output_codecs_are_these():
    assert OUTPUT_CODECS.names() == ["linear", "low-rank", "projection", "raw"]


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_the_layout_matches_the_encoders_code(codec, rows):
    code = codec.encoder(torch.randn(rows, D))
    codec.layout(rows).check(code)
    assert codec.layout(rows).values.elements == rows * codec.code_size


def test_the_client_gets_no_weights(codec):
    assert not list(codec.decoder.parameters())


def test_the_decoded_output_may_be_changed_in_place(codec):
    code = codec.encoder(torch.randn(3, D))
    leaf = code.values.detach().requires_grad_()
    nn.ReLU(inplace=True)(codec.decoder(Code(leaf))).sum().backward()
    assert leaf.grad is not None


def test_an_encoded_gradient_has_its_layout_and_decodes(codec):
    values = codec.encoder(torch.randn(40, D)).values
    gradient = torch.randn(40, C) @ torch.randn(C, *values.shape[1:])
    spec = TensorSpec(tuple(values.shape))
    sent = codec.encode_gradient(gradient)
    codec.gradient_layout(spec).check(sent)
    torch.testing.assert_close(codec.decode_gradient(sent), gradient, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *(("raw", None), ("low-rank", None)),
        *((name, size) for name in SIZES for size in (D, D + 1)),
    ],
)
def test_at_full_width_nothing_changes(name, size):
    codec, tail = make(name, size), nn.Linear(D, C)
    output = torch.randn(3, D)
    assert codec.is_whole
    assert torch.equal(codec.encoder(output).values, output)
    assert narrowed_tail(tail, codec) is tail
    assert widened_tail(tail, codec) is tail
    assert not list(codec.encoder.parameters())


@shortening
def test_both_ends_draw_the_same_start(name):
    first, second = make(name), make(name)
    assert first.fingerprint == second.fingerprint != ""
    assert torch.equal(first.matrix(), second.matrix())
    identity = first.matrix() @ first.matrix().T
    torch.testing.assert_close(identity, torch.eye(K), rtol=0, atol=1e-5)


def test_a_projection_is_fixed_and_a_linear_map_is_trained():
    assert not list(make("projection").encoder.parameters())
    (weight,) = make("linear").encoder.parameters()
    assert weight.shape == (K, D)


@shortening
def test_a_widened_tail_makes_the_logits_of_the_narrow_one(name):
    codec = make(name)
    tail = nn.Sequential(nn.Dropout(0.5), nn.Linear(D, 8), nn.ReLU(), nn.Linear(8, C))
    narrow = narrowed_tail(tail, codec).eval()
    wide = widened_tail(narrow, codec).eval()
    output = torch.randn(5, D)
    torch.testing.assert_close(wide(output), narrow(codec.encoder(output).values))
    shapes = {name: tensor.shape for name, tensor in tail.state_dict().items()}
    assert {n: t.shape for n, t in wide.state_dict().items()} == shapes
    assert tail[1].in_features == D  # the given one is not touched


@shortening
def test_a_narrow_tail_begins_with_logits_as_large_as_the_whole_ones(name):
    torch.manual_seed(0)
    codec = OUTPUT_CODECS.create(name, shape=(512,), size=48, seed=1)
    tail, output = nn.Linear(512, 10, bias=False), torch.randn(400, 512)
    narrow = narrowed_tail(tail, codec)(codec.encoder(output).values)
    assert narrow.std().item() == pytest.approx(tail(output).std().item(), rel=0.3)


@shortening
@pytest.mark.parametrize(
    "tail",
    [nn.Sequential(nn.BatchNorm1d(D), nn.Linear(D, C)), nn.ReLU(), nn.Linear(8, C)],
    ids=["batchnorm", "nothing", "another width"],
)
def test_a_tail_that_does_not_begin_with_a_linear_layer_is_refused(name, tail):
    with pytest.raises(ConfigError, match="begins with a linear layer of 32"):
        narrowed_tail(tail, make(name))


@pytest.mark.parametrize("name", ["raw", "low-rank"])
def test_a_whole_output_has_no_size(name):
    with pytest.raises(ConfigError, match=f"unknown {name} option 'size'"):
        make(name, 5)


@shortening
def test_without_a_size_the_output_is_whole(name):
    assert OUTPUT_CODECS.create(name, shape=(D,)).is_whole


def test_sizes_and_classes_that_cannot_be_are_refused():
    for size in (0, -1):
        with pytest.raises(ConfigError, match=f"at least 1, got {size}"):
            make("linear", size)
    with pytest.raises(ConfigError, match="number of classes, got 0"):
        OUTPUT_CODECS.create("low-rank", shape=(D,))


def test_two_factors_hold_the_exact_gradient_of_a_linear_tail():
    codec, tail = make("low-rank"), nn.Linear(D, C)
    output = torch.randn(64, D, requires_grad=True)
    labels = torch.randint(C, (64,))
    nn.functional.cross_entropy(tail(output), labels).backward()
    sent = codec.encode_gradient(output.grad)
    assert sent.values.numel() + sent.side[0].numel() == C * (64 + D) < 64 * D
    got = codec.decode_gradient(sent)
    torch.testing.assert_close(got, output.grad, rtol=1e-4, atol=1e-8)


def test_a_small_batch_sends_the_gradient_itself():
    codec, gradient = make("low-rank"), torch.randn(C, D)
    sent = codec.encode_gradient(gradient)
    assert sent.values is gradient
    assert codec.decode_gradient(sent) is gradient


def test_a_gradient_of_a_higher_rank_is_refused():
    with pytest.raises(CodecError, match=r"rank .* above 4, so the tail is not linear"):
        make("low-rank").encode_gradient(torch.randn(64, D))
    with pytest.raises(CodecError, match="low-rank"):
        make("low-rank").encode_gradient(torch.full((64, D), torch.nan))
