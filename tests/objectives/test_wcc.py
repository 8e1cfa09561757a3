"""Within-class compaction against its formula, and its invariances."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from lightsplit.errors import CodecError
from lightsplit.objectives import within_class_compaction


@st.composite
def batches(draw):
    """Codes (B, k) in float64 with labels (B,) of any integers."""
    size, width = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    kinds = draw(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=4))
    labels = [draw(st.sampled_from(kinds)) for _ in range(size)]
    code = torch.randn(size, width, dtype=torch.float64, generator=generator)
    return code, torch.tensor(labels)


laws = settings(max_examples=40, deadline=None)


def written_out(code, labels):
    total = torch.zeros((), dtype=code.dtype)
    for label in set(labels.tolist()):
        members = code[labels == label]
        distances = (members - members.mean(dim=0)).square().sum(dim=1)
        total = total + distances.sum() / len(members)
    return total


@laws
@given(batches())
def test_it_is_the_formula(batch):
    torch.testing.assert_close(within_class_compaction(*batch), written_out(*batch))


@laws
@given(batches())
def test_the_gradient_is_twice_the_distance_to_the_mean_over_the_class_size(batch):
    code, labels = batch
    code.requires_grad_()
    (gradient,) = torch.autograd.grad(within_class_compaction(code, labels), code)
    for row, label, found in zip(code, labels, gradient, strict=True):
        members = code[labels == label]
        torch.testing.assert_close(
            found, 2 / len(members) * (row - members.mean(dim=0))
        )


@laws
@given(batches(), st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(batch, random):
    code, labels = batch
    order = list(range(len(code)))
    random.shuffle(order)
    torch.testing.assert_close(
        within_class_compaction(code[order], labels[order]),
        within_class_compaction(code, labels),
    )


@laws
@given(batches())
def test_the_names_of_classes_do_not_matter(batch):
    code, labels = batch
    renamed = 3 - 7 * labels
    torch.testing.assert_close(
        within_class_compaction(code, renamed), within_class_compaction(code, labels)
    )


@laws
@given(batches())
def test_moving_each_class_as_a_whole_changes_nothing(batch):
    code, labels = batch
    moved = code + (labels % 5).unsqueeze(1)
    torch.testing.assert_close(
        within_class_compaction(moved, labels), within_class_compaction(code, labels)
    )


@laws
@given(batches(), st.floats(-10, 10))
def test_scaling_the_code_scales_it_by_the_square(batch, factor):
    code, labels = batch
    torch.testing.assert_close(
        within_class_compaction(factor * code, labels),
        factor**2 * within_class_compaction(code, labels),
    )


def test_classes_of_one_sample_add_nothing():
    code = torch.randn(6, 4)
    assert within_class_compaction(code, torch.arange(6)) == 0


def test_a_code_of_any_shape_is_flattened_for_each_sample():
    code, labels = torch.randn(6, 2, 3, 4), torch.tensor([0, 0, 1, 1, 1, 2])
    assert within_class_compaction(code, labels) == within_class_compaction(
        code.flatten(1), labels
    )


def test_it_can_be_differentiated_twice():
    code = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([4, 4, -1, 4, 9])
    assert gradcheck(lambda c: within_class_compaction(c, labels), (code,))
    assert gradgradcheck(lambda c: within_class_compaction(c, labels), (code,))


@pytest.mark.parametrize("labels", [torch.zeros(5), torch.zeros(6, 1), torch.zeros(())])
def test_anything_but_one_label_for_each_sample_is_refused(labels):
    with pytest.raises(CodecError, match="one label for each row"):
        within_class_compaction(torch.randn(6, 4), labels)
