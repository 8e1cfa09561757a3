"""Re-identification against a plain search, and its laws."""

import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.metrics import reidentification

module = sys.modules[reidentification.__module__]  # the function has its name
laws = settings(max_examples=40, deadline=None)


def by_search(guesses, originals):
    """Return 1 where no distance in the row of all is below that to its own."""
    hits = []
    for index, guess in enumerate(guesses.double()):
        gaps = [(guess - truth).square().sum() for truth in originals.double()]
        hits.append(float(gaps[index] == min(gaps)))
    return torch.tensor(hits)


@laws
@given(st.integers(1, 20), st.integers(0, 999), st.floats(0, 3))
def test_it_equals_a_plain_search(count, seed, spread):
    generator = torch.Generator().manual_seed(seed)
    originals = torch.rand(count, 1, 3, 3, generator=generator)
    guesses = originals + spread * torch.randn(originals.shape, generator=generator)
    hits = reidentification(guesses, originals)
    assert torch.equal(hits, by_search(guesses, originals))


@laws
@given(st.integers(1, 30), st.integers(0, 999), st.sampled_from([1, 2, 255]))
def test_originals_point_at_themselves_also_when_there_are_twins(count, seed, levels):
    generator = torch.Generator().manual_seed(seed)
    grey = torch.randint(0, levels + 1, (count, 1, 2, 2), generator=generator)
    originals = grey / levels
    assert (reidentification(originals, originals) == 1).all()


def test_images_dealt_out_at_random_hit_once_in_n():
    originals = torch.rand(50, 1, 4, 4)
    shuffles = [torch.randperm(50) for _ in range(200)]
    hits = [reidentification(originals[order], originals) for order in shuffles]
    fixed = [float((order == torch.arange(50)).float().mean()) for order in shuffles]
    assert [float(hit.mean()) for hit in hits] == pytest.approx(fixed)
    assert torch.cat(hits).mean().item() == pytest.approx(1 / 50, abs=0.007)


def test_one_guess_for_all_hits_once(digits):
    mean = digits.mean(0, keepdim=True).expand_as(digits)
    assert reidentification(mean, digits).sum() == 1


def test_neighbours_in_brightness_are_told_apart_despite_rounding():
    steps = torch.arange(600).view(-1, 1, 1, 1) * 2.0**-23
    originals = (0.75 + steps).expand(-1, 3, 32, 32)
    assert (reidentification(originals, originals) == 1).all()


def test_the_size_of_the_pieces_does_not_matter(monkeypatch):
    originals = torch.rand(40, 1, 4, 4)
    guesses = originals + 0.5 * torch.randn(originals.shape)
    whole = reidentification(guesses, originals)
    monkeypatch.setattr(module, "CHUNK", 7)
    assert torch.equal(reidentification(guesses, originals), whole)
    assert 0 < whole.mean() < 1
