import pytest
import torch

from lightsplit.errors import SplitError
from lightsplit.splitting import legal_cuts, split


def test_a_model_that_needs_an_example_says_so(models):
    with pytest.raises(SplitError, match=r"Residual is cut by.*give split an example"):
        split(models.Residual(), head_until="layer1", tail_from="fc")


def test_without_an_example_no_cut_of_such_a_model_is_found(models):
    assert legal_cuts(models.Residual()) == []


@pytest.mark.parametrize("share", [["mask"], ["x", "mask"]])
def test_an_unknown_name_in_share_is_refused_with_those_that_exist(models, share):
    with pytest.raises(SplitError, match=r"cannot share 'mask': .* it has 'x'"):
        split(
            models.Encoder(),
            head_until="layers.0",
            tail_from="fc",
            example={"x": torch.zeros(4, 5, 3)},
            share=share,
        )
