"""The attacker's images come pass by pass, and continue after a pause."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lightsplit.attacks import LabelledImages
from lightsplit.attacks.auxiliary import AuxiliaryBatches, EndlessRows
from lightsplit.errors import AuditError


@given(total=st.integers(1, 20), sizes=st.lists(st.integers(1, 30), max_size=8))
def test_every_row_comes_once_per_pass_whatever_the_batches(total, sizes):
    rows = EndlessRows(total, seed=3)
    drawn = torch.cat([torch.empty(0).long(), *(rows.next(size) for size in sizes)])
    assert [len(part) for part in drawn.split(total)][:-1] == [total] * (
        -(-sum(sizes) // total) - 1
    )
    for part in drawn.split(total):
        assert len(set(part.tolist())) == len(part)
    assert rows.drawn == sum(sizes)


def test_rows_that_skip_the_same_number_of_draws_continue_the_same():
    first, second = EndlessRows(7, seed=1), EndlessRows(7, seed=1)
    first.next(10)
    second.drawn = 10
    assert torch.equal(first.next(9), second.next(9))


def test_an_image_keeps_its_label():
    labels = torch.arange(12)
    images = labels.float().view(-1, 1, 1, 1)
    batches = AuxiliaryBatches(LabelledImages(images, labels), 0, torch.device("cpu"))
    batch = batches.next(5)
    assert torch.equal(batch.images.flatten().long(), batch.labels)


def test_an_attacker_without_images_is_refused():
    with pytest.raises(AuditError, match="needs auxiliary images"):
        EndlessRows(0, seed=0)
