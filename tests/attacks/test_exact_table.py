"""The table from codes to the means of their images."""

import itertools

import pytest
import torch

from lightsplit.attacks import Exchange, Pairs, ServerView
from lightsplit.attacks.exact_table import ExactTable
from lightsplit.codecs import CODECS, Code
from lightsplit.protocol import CodeMessage, OutputMessage, Wire

CODES = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=2)))


@pytest.fixture
def view_of(scene):
    """Return what makes the view of a server that received these codes."""
    known = scene().view.contract

    def make(codes):
        return _view(codes, known)

    return make


def _view(codes, contract):
    codec = CODECS.create("raw", shape=tuple(codes.shape[1:]), ratio=1)
    sent = CodeMessage(0, 0, Code(codes), is_training=False)
    reply = OutputMessage(0, 0, Code(torch.zeros(len(codes), 1)))
    return ServerView(contract, Wire(codec), (Exchange(sent, reply),))


def toy(count=400):
    """Return pairs of two-bit codes and images that the codes only half explain."""
    torch.manual_seed(0)
    codes = CODES[torch.randint(4, (count,))]
    images = (codes.sum(dim=1).view(-1, 1, 1, 1) + torch.rand(count, 1, 3, 3)) / 4
    return Pairs(codes, codes, images)


def test_no_other_decoder_has_a_lower_squared_error(view_of):
    pairs = toy()
    found = ExactTable(pairs=pairs).reconstruct(view_of(pairs.codes))
    lowest = (found - pairs.images).square().mean()
    for row, code in enumerate(CODES):  # the error is a sum over codes: try each alone
        members = (pairs.codes == code).all(dim=1)
        for change in (0.01, -0.01):
            other = found.clone()
            other[members] += change * (1 + row)
            assert (other - pairs.images).square().mean() > lowest
        mean = pairs.images[members].mean(dim=0)
        torch.testing.assert_close(found[members][0], mean)


def test_an_unknown_code_gets_the_image_of_the_nearest(view_of):
    pairs = toy()
    seen = Pairs(pairs.codes[:3], pairs.codes[:3], pairs.images[:3])
    near = pairs.codes[:3] * 0.9
    attack = ExactTable(pairs=seen)
    assert torch.equal(
        attack.reconstruct(view_of(near)),
        ExactTable(pairs=seen).reconstruct(view_of(pairs.codes[:3])),
    )
    assert "0 of 3 codes were in the table" in attack.notes[0]


def test_it_counts_distinct_codes(view_of):
    pairs = toy()
    attack = ExactTable(pairs=pairs)
    attack.reconstruct(view_of(pairs.codes[:7]))
    assert attack.notes == [
        "4 distinct codes of 400 images; 7 of 7 codes were in the table"
    ]


def test_an_exemplar_is_the_known_image_that_is_nearest_to_the_mean(view_of):
    pairs = toy()
    view = view_of(CODES)
    means = ExactTable(pairs=pairs).reconstruct(view)
    found = ExactTable(pairs=pairs, exemplar=True).reconstruct(view)
    for code, mean, image in zip(CODES, means, found, strict=True):
        own = pairs.images[(pairs.codes == code).all(dim=1)]
        distance = (own - mean).flatten(1).square().sum(dim=1)
        assert torch.equal(image, own[distance.argmin()])


@pytest.mark.slow
def test_on_codes_that_are_all_different_it_is_the_nearest_image(scene, trivial_error):
    made = scene("lightsplit-f", ratio=4)
    found = ExactTable(pairs=made.knowledge.pairs).reconstruct(made.view)
    assert made.error(found) == pytest.approx(
        trivial_error(made, ("nearest-image",)), rel=1e-4
    )


@pytest.mark.slow
def test_on_noise_it_beats_no_mean_image(scene, trivial_error):
    made = scene(noise=True)
    found = ExactTable(pairs=made.knowledge.pairs).reconstruct(made.view)
    assert made.error(found) > trivial_error(made, ("mean-image",))
