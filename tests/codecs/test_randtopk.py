import pytest
import torch

from lightsplit.codecs import CODECS
from lightsplit.errors import ConfigError
from lightsplit.seeding import scope


def make(**options):
    return CODECS.create("randtopk", shape=(64,), ratio=8, **options)


def places(codec, activation):
    with scope(1, "draws"):
        return codec.encoder(activation).side[0]


def test_prediction_keeps_the_largest_values():
    codec, activation = make(), torch.randn(5, 64)
    codec.encoder.eval()
    expected = CODECS.create("topk", shape=(64,), ratio=8).encoder(activation)
    assert torch.equal(places(codec, activation), expected.side[0])


def test_training_draws_the_wanted_share_from_outside_the_top_k():
    activation = torch.arange(64.0).repeat(4000, 1)  # the top 8 are the places 56 to 63
    for share in (0.05, 0.3):
        codec = CODECS.create(
            "randtopk", shape=(64,), ratio=64, random_share=share
        )  # of one draw, the share is exact
        drawn = places(codec, activation)
        outside = (drawn < 63).float().mean().item()
        assert outside == pytest.approx(share, abs=0.02)


def test_no_place_is_drawn_twice_and_values_are_not_rescaled():
    codec, activation = make(random_share=0.5), torch.randn(40, 64)
    with scope(1, "draws"):
        code = codec.encoder(activation)
    assert bool((code.side[0].diff(dim=1) > 0).all())
    assert torch.equal(code.values, activation.gather(1, code.side[0].long()))


def test_draws_follow_the_seed_of_the_client():
    codec, activation = make(random_share=0.5), torch.randn(5, 64)
    assert torch.equal(places(codec, activation), places(codec, activation))
    with scope(2, "draws"):
        other = codec.encoder(activation).side[0]
    assert not torch.equal(other, places(codec, activation))


def test_a_ratio_of_one_keeps_everything():
    codec = CODECS.create("randtopk", shape=(6,), ratio=1)
    activation = torch.randn(3, 6)
    code = codec.unpack(codec.pack(codec.encoder(activation)))
    assert torch.equal(codec.decoder(code), activation)
    assert codec.packed_layout(3).side_bytes == 0


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_a_share_outside_the_range_is_refused(share):
    with pytest.raises(ConfigError, match="random_share must be between 0 and 1"):
        make(random_share=share)
