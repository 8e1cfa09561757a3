"""Augmentations change training images, and come out the same for the same step."""

import numpy as np
import pytest
import torch

from lightsplit.data import AUGMENTATIONS, Batches, Samples
from lightsplit.errors import ConfigError, DataError

IMAGES = torch.arange(1, 4 * 2 * 5 * 6 + 1).float().view(4, 2, 5, 6)
LABELS = torch.arange(4)


def draw(name, seed=0, images=IMAGES, labels=LABELS, **options):
    generator = np.random.default_rng(seed)
    return AUGMENTATIONS.create(name, **options)(images, labels, generator)


def shifted(image, down, right):
    """Return the image moved by whole pixels, with zeros where nothing was."""
    moved = torch.zeros_like(image)
    height, width = image.shape[1:]
    for y in range(height):
        for x in range(width):
            if 0 <= y + down < height and 0 <= x + right < width:
                moved[:, y, x] = image[:, y + down, x + right]
    return moved


def test_every_crop_is_a_shift_of_its_own_image():
    images, labels = draw("crop", padding=2)
    assert torch.equal(labels, LABELS)
    assert images.shape == IMAGES.shape
    shifts = [(y, x) for y in range(-2, 3) for x in range(-2, 3)]
    for before, after in zip(IMAGES, images, strict=True):
        assert any(torch.equal(after, shifted(before, y, x)) for y, x in shifts)


def test_all_shifts_occur():
    images = torch.ones(1, 1, 3, 3)
    seen = {draw("crop", seed, images, padding=1)[0].sum().item() for seed in range(99)}
    assert seen == {9.0, 6.0, 4.0}  # in place, along one side, along two


def test_half_of_the_images_are_mirrored():
    images = torch.arange(2.0).expand(1000, 1, 1, 2)
    flipped, _ = draw("flip", images=images)
    share = float((flipped[:, 0, 0, 0] == 1).float().mean())
    assert 0.45 < share < 0.55
    assert torch.equal(flipped.sum(-1), images.sum(-1))


@pytest.mark.parametrize("name", AUGMENTATIONS.names())
def test_the_images_given_are_not_changed(name):
    before = IMAGES.clone()
    draw(name)
    assert torch.equal(IMAGES, before)


@pytest.mark.parametrize("name", AUGMENTATIONS.names())
def test_inputs_that_are_no_images_are_refused(name):
    with pytest.raises(DataError, match="changes images of shape"):
        draw(name, images=torch.zeros(4, 3))
    with pytest.raises(DataError, match="not their masks"):
        draw(name, labels=torch.zeros(4, 5, 6))


def test_a_crop_without_padding_is_refused():
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        AUGMENTATIONS.create("crop", padding=0)


@pytest.fixture
def make_batches():
    samples = Samples(
        torch.randint(256, (20, 1, 8, 8), dtype=torch.uint8), LABELS[:1].expand(20)
    )
    augment = [AUGMENTATIONS.create("crop", padding=2), AUGMENTATIONS.create("flip")]

    def make(seed=0, client=0, augment=augment):
        return Batches(samples, range(20), 5, seed=seed, client=client, augment=augment)

    return make


def test_a_step_is_augmented_the_same_whenever_it_is_asked_for(make_batches):
    first, later = make_batches(), make_batches()
    images = [first.batch(step)[0] for step in range(9)]
    assert torch.equal(later.batch(7)[0], images[7])
    assert torch.equal(first.batch(2)[0], images[2])


def test_clients_steps_and_seeds_draw_their_own(make_batches):
    changed = make_batches(augment=[AUGMENTATIONS.create("flip")])
    plain = make_batches(augment=())

    def flips(batches, step):
        pairs = zip(batches.batch(step)[0], plain.batch(step)[0], strict=True)
        return tuple(torch.equal(a, b) for a, b in pairs)

    assert len({flips(changed, step) for step in range(8)}) > 2
    one, other = make_batches(seed=1).batch(0)[0], make_batches(seed=2).batch(0)[0]
    assert not torch.equal(one, other)
