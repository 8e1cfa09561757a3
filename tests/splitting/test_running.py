import pytest
import torch

from lightsplit.errors import SplitError
from lightsplit.splitting import split

X, MASK = torch.zeros(4, 5, 3), torch.ones(4, 5, 1)


@pytest.mark.parametrize("example", [X, {"x": X}, {"x": X, "mask": None}])
def test_an_input_that_the_example_did_not_have_is_refused_by_name(models, example):
    head = split(models.Encoder(), head_until="layers.0", example=example).head
    assert head({"x": X, "mask": None}).shape == (4, 5, 8)
    with pytest.raises(SplitError, match="the batch has the input 'mask', which"):
        head({"x": X, "mask": MASK})
