"""Codec franken: a file of trained tensors, and bytes as long as their content."""

import pytest
import torch
from safetensors.torch import save_file

from lightsplit.codecs import CODECS, Code, Layout, TensorSpec
from lightsplit.codecs.entropy_coding import whole_frequencies
from lightsplit.codecs.franken import REACH
from lightsplit.errors import CodecError, ConfigError
from lightsplit.protocol.frames.legal import Enumerated

SHAPE = (5, 7, 6)


def make(**options):
    return CODECS.create("franken", shape=SHAPE, channels=3, hidden=4, **options)


@pytest.fixture
def file(tmp_path):
    """Return a file with the tensors of a codec whose code is mostly 0."""
    codec, path = make(), tmp_path / "franken.safetensors"
    shares = torch.full((3, 2 * REACH + 1), 1e-3)
    shares[:, REACH] = 1
    codec.use_frequencies(whole_frequencies(shares))
    save_file(codec.tensors(), path)
    return path


def test_both_ends_with_one_file_make_and_read_the_same_bytes(file):
    client, server = make(trained=str(file)), make(trained=str(file), seed=9)
    assert client.fingerprint == server.fingerprint != ""
    activation = torch.randn(6, *SHAPE)
    code = client.encoder(activation)
    assert code.values.shape == (6, 3 * 2 * 2)
    received = server.unpack(client.pack(code))
    assert torch.equal(received.values, code.values)
    assert torch.equal(server.decoder(received), client.decoder(code))
    again = make(trained=str(file))
    assert torch.equal(again.encoder(activation).values, code.values)


def test_a_trained_codec_has_nothing_left_to_train(file):
    codec = make(trained=str(file))
    for side in (codec.encoder, codec.decoder):
        assert not any(parameter.requires_grad for parameter in side.parameters())


def test_a_code_of_frequent_values_is_shorter_and_its_length_is_no_secret(file):
    codec = make(trained=str(file))
    usual, rare = torch.zeros(1, 12), torch.full((1, 12), 30.0)
    short, long = (codec.pack(Code(values)) for values in (usual, rare))
    assert len(short.side[0]) < len(long.side[0])
    for packed in (short, long):
        codec.packed_layout(1).check(packed)
        assert 4 * int(packed.values) == len(packed.side[0])
        assert 8 * len(packed.side[0]) <= codec.packed_bits


def test_values_end_at_the_reach_of_the_frequencies():
    codec = make()
    values = codec.encoder(1e4 * torch.randn(3, *SHAPE)).values
    assert float(values.detach().abs().max()) == REACH
    assert torch.equal(codec.unpack(codec.pack(Code(values))).values, values)


def test_a_message_may_be_shorter_than_the_layout_and_no_longer():
    codec = make()
    most = codec.packed_layout(4)
    assert not most.is_exact
    legal = Enumerated(codec.packed_layout, 8)

    def claimed(samples, count, dtype=torch.uint8):
        values = TensorSpec((samples,), torch.int16)
        return Layout(values, (TensorSpec((count,), dtype),))

    longest = most.side[0].shape[0]
    assert legal.most_bytes == codec.packed_layout(8).code_bytes
    assert legal.sizes(claimed(4, 16), 8) == [4]
    assert legal.sizes(claimed(4, longest), 8) == [4]
    assert legal.sizes(claimed(4, longest + 1), 8) == []
    assert legal.sizes(claimed(4, 0), 8) == []
    assert legal.sizes(claimed(4, 16, torch.int8), 8) == []
    assert legal.sizes(claimed(9, 16), 8) == []
    assert legal.sizes(Layout(TensorSpec((4,), torch.int16)), 8) == []
    assert str(most.side[0]) == f"up to uint8 ({longest},)"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t | {"frequencies": t["frequencies"] + 1}, "add up to 65536"),
        (lambda t: t | {"frequencies": t["frequencies"][:2]}, "another cut"),
        (lambda t: t | {"more": torch.zeros(1)}, "another cut"),
        (lambda t: {"frequencies": t["frequencies"]}, "another cut"),
    ],
)
def test_a_file_of_another_codec_is_refused(change, said, tmp_path):
    path = tmp_path / "other.safetensors"
    save_file(change(make().tensors()), path)
    with pytest.raises(ConfigError, match=said):
        make(trained=str(path))


def test_a_missing_or_damaged_file_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.safetensors.*lightsplit distil"):
        make(trained=str(tmp_path / "none.safetensors"))
    (tmp_path / "bad").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match="bad"):
        make(trained=str(tmp_path / "bad"))


def test_packed_bytes_that_do_not_add_up_are_refused():
    codec = make()
    packed = codec.pack(codec.encoder(torch.randn(2, *SHAPE)))
    with pytest.raises(CodecError, match="add up"):
        codec.unpack(Code(packed.values[:1], packed.side))


@pytest.mark.parametrize("shape", [(5,), (5, 6), (1, 2, 3, 4)])
def test_an_activation_that_is_no_map_is_refused(shape):
    with pytest.raises(ConfigError, match=r"needs a shape \(C, H, W\)"):
        CODECS.create("franken", shape=shape)
