"""Codes of the same images, pass by pass."""

import torch

from lightsplit.attacks.releases import Releases


def filled(shape=(3,), passes=3):
    kept = Releases(4, passes)
    for number in range(passes - 1):
        for rows in (torch.tensor([2, 0]), torch.tensor([1, 3])):
            kept.add(number, rows, 10.0 * number + rows.view(-1, *[1] * len(shape)))
    return kept


def test_a_pass_is_whole_when_every_image_was_sent():
    kept = filled()
    assert kept.whole().tolist() == [0, 1]
    kept.add(2, torch.tensor([0, 1, 2]), torch.zeros(3, 1))
    assert kept.whole().tolist() == [0, 1]
    kept.add(2, torch.tensor([3]), torch.zeros(1, 1))
    assert kept.whole().tolist() == [0, 1, 2]


def test_joined_codes_are_in_the_order_of_the_images_whatever_that_of_sending():
    joined = filled().joined(torch.tensor([0, 1]))
    assert joined.tolist() == [[0, 10], [1, 11], [2, 12], [3, 13]]


def test_maps_are_joined_along_their_channels():
    kept = Releases(2, 2)
    for number in range(2):
        kept.add(number, torch.arange(2), torch.full((2, 3, 4, 5), float(number)))
    joined = kept.joined(torch.arange(2))
    assert joined.shape == (2, 6, 4, 5)
    assert joined[:, :3].max() == 0
    assert joined[:, 3:].min() == 1


def test_what_was_saved_and_loaded_goes_on_like_the_original():
    first, second = filled(), Releases(4, 3)
    second.load("x", first.state("x"))
    for kept in (first, second):
        kept.add(2, torch.arange(4), torch.ones(4, 1))
    assert torch.equal(first.joined(torch.arange(3)), second.joined(torch.arange(3)))
