import pytest
import torch
from torch.nn.functional import cosine_similarity

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import CodecError, ConfigError


def make(size=24, ratio=4, seed=0):
    return CODECS.create("c3", shape=(size,), ratio=ratio, seed=seed)


def circular(key, vector):
    """The circular convolution, by its definition."""
    places = torch.arange(len(key))
    return vector[(places.unsqueeze(1) - places) % len(key)] @ key


def test_a_row_is_the_sum_of_circular_convolutions():
    codec, activation = make(), torch.randn(4, 24)
    keys = codec.encoder.keys
    expected = sum(map(circular, keys, activation))
    torch.testing.assert_close(codec.encoder(activation).values[0], expected)
    assert keys.norm(dim=1).tolist() == pytest.approx([1.0] * 4)


def test_separating_is_the_adjoint_of_superposing():
    codec = make()
    activation, row = torch.randn(4, 24), torch.randn(1, 24)
    sent = codec.encoder(activation)
    back = codec.decoder(Code(row, sent.side))
    torch.testing.assert_close((sent.values * row).sum(), (activation * back).sum())


def cosine(ratio, seed, activation):
    codec = make(size=4096, ratio=ratio, seed=seed)
    back = codec.decoder(codec.encoder(activation))
    return cosine_similarity(back, activation).mean().item()


@pytest.mark.parametrize("ratio", [2, 4, 8, 16, 32])
def test_the_cosine_of_what_comes_back_follows_from_the_size_of_a_group(ratio):
    found = cosine(ratio, 0, torch.randn(2 * ratio, 4096))
    assert found == pytest.approx((ratio + 1) ** -0.5, abs=0.02)


def test_behind_a_relu_the_published_cosine_lies_within_the_spread_of_the_keys():
    # The mean of the activations meets the mean of each key, so the draw matters.
    activation = torch.randn(16, 4096).relu()
    found = torch.tensor([cosine(8, seed, activation) for seed in range(8)])
    assert found.mean().item() == pytest.approx(1 / 3, abs=0.06)
    assert found.min() < 0.28 < found.max()


@pytest.mark.parametrize("batch_size", [1, 3, 4, 9])
def test_a_last_small_group_is_sent_and_not_dropped(batch_size):
    codec, activation = make(), torch.randn(batch_size, 24, requires_grad=True)
    code = codec.encoder(activation)
    assert len(code.values) == -(-batch_size // 4)
    assert codec.samples(code) == batch_size
    back = codec.decoder(code)
    assert back.shape == activation.shape
    back[-1].sum().backward()
    assert activation.grad[-1].abs().sum() > 0


def test_a_sample_of_its_own_comes_back_with_the_echo_of_its_key_alone():
    codec, activation = make(size=4096), torch.randn(1, 4096)
    found = cosine_similarity(codec.decoder(codec.encoder(activation)), activation)
    assert found.item() == pytest.approx(0.5**0.5, abs=0.05)


@pytest.mark.parametrize("count", [0, -1, 4, 9])
def test_a_number_of_samples_that_does_not_fit_is_refused(count):
    code = Code(torch.zeros(2, 24), (torch.tensor([count], dtype=torch.int32),))
    with pytest.raises(CodecError, match="number of samples in 2 groups of up to 4"):
        make().decoder(code)


def test_a_group_of_a_part_of_a_sample_is_refused():
    with pytest.raises(ConfigError, match=r"a whole number, got 2\.5"):
        make(ratio=2.5)
    with pytest.raises(ConfigError, match="a whole number, got inf"):
        make(ratio=float("inf"))
