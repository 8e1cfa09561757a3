import pytest
import torch

from lightsplit.backdoors import INSPECTORS
from lightsplit.backdoors.client_side.scrutinizer import WINDOW


def watch(steps, gradient_of, *, size=40):
    """Let a scrutinizer look at made-up gradients of random labels."""
    inspector, generator = INSPECTORS.create("scrutinizer"), torch.Generator()
    generator.manual_seed(0)
    for step in range(steps):
        labels = torch.randint(4, (size,), generator=generator)
        noise = torch.randn(size, 30, generator=generator)
        gradient = gradient_of(labels, noise)
        inspector.observe(step, torch.zeros(size, 30), labels, gradient)
    return inspector


def by_class(labels, noise):
    return torch.eye(30)[labels] + 0.1 * noise


def without_class(_labels, noise):
    return 1 + noise


def test_gradients_that_know_the_classes_raise_no_alarm():
    inspector = watch(2 * WINDOW, by_class)
    assert inspector.score > 0.8
    assert inspector.alarmed_at is None


def test_gradients_that_know_no_classes_raise_an_alarm_after_one_window():
    inspector = watch(2 * WINDOW, without_class)
    assert inspector.score < 0.1
    assert inspector.alarmed_at == WINDOW - 1


def test_there_is_no_score_before_the_end_of_the_first_window():
    assert watch(WINDOW - 1, by_class).score is None


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_gradients_give_no_nan(value):
    inspector = watch(WINDOW, lambda labels, noise: torch.full_like(noise, value))
    assert 0 <= inspector.score <= 1


def test_a_batch_without_pairs_of_both_kinds_is_passed_over():
    inspector = INSPECTORS.create("scrutinizer")
    for step in range(2 * WINDOW):
        inspector.observe(step, torch.zeros(3, 5), torch.arange(3), torch.randn(3, 5))
    assert inspector.score is None


def test_no_wrong_label_is_ever_sent():
    inspector = INSPECTORS.create("scrutinizer")
    assert all(inspector.probe(step, torch.arange(3)) is None for step in range(200))
