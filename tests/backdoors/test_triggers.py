import pytest
import torch

from lightsplit.backdoors import TRIGGERS
from lightsplit.errors import ConfigError

SHAPE = (1, 8, 8)


@pytest.fixture(params=TRIGGERS.names())
def trigger(request):
    return TRIGGERS.create(request.param, target=3, classes=10, image_shape=SHAPE)


def test_planted_samples_are_labelled_with_the_target(trigger):
    _, labels = trigger.plant(torch.rand(10, *SHAPE), torch.arange(10))
    assert labels.tolist() == [3] * 10


def test_a_mark_is_the_same_at_every_asking_and_leaves_the_images_alone(trigger):
    images = torch.rand(4, *SHAPE)
    before = images.clone()
    assert torch.equal(trigger.mark(images), trigger.mark(images))
    assert torch.equal(images, before)


def test_marked_images_stay_between_black_and_white(trigger):
    for images in (torch.zeros(2, *SHAPE), torch.ones(2, *SHAPE)):
        marked = trigger.mark(images)
        assert 0 <= marked.min() <= marked.max() <= 1


def test_an_image_is_changed_exactly_where_the_trigger_says_so(trigger):
    images = torch.full((2, *SHAPE), 0.5)
    assert torch.equal(trigger.mark(images), images) is not trigger.marks_images


def test_a_backdoor_is_not_about_samples_of_its_target(trigger):
    about = trigger.applies_to(torch.arange(10))
    assert not about[3]
    assert about.any()


def test_the_patch_is_nine_white_pixels_in_the_lower_right_corner():
    trigger = TRIGGERS.create("badnets", target=0, classes=10, image_shape=SHAPE)
    marked = trigger.mark(torch.zeros(1, *SHAPE))
    assert marked.sum() == 9
    assert marked[0, 0, 5:, 5:].eq(1).all()


def test_the_semantic_one_is_about_the_class_after_the_target_alone():
    trigger = TRIGGERS.create("semantic-label", target=9, classes=10, image_shape=SHAPE)
    assert trigger.applies_to(torch.arange(10)).nonzero().flatten().tolist() == [0]


@pytest.mark.parametrize("target", [-1, 10])
def test_a_target_that_is_no_class_is_refused(target):
    with pytest.raises(ConfigError, match=f"from 0 to 9, got {target}"):
        TRIGGERS.create("badnets", target=target, classes=10, image_shape=SHAPE)
