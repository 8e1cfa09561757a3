import pytest
import torch

from lightsplit.codecs import CODECS
from lightsplit.errors import ConfigError


def test_raw_changes_nothing():
    codec = CODECS.create("raw", shape=(3, 2, 2))
    activation = torch.randn(4, 3, 2, 2)
    assert torch.equal(codec.decoder(codec.encoder(activation)), activation)
    assert codec.ratio == 1


@pytest.mark.parametrize("ratio", [2, 8.0, 1.5])
def test_a_ratio_is_not_silently_ignored(ratio):
    with pytest.raises(ConfigError, match="ratio must be 1"):
        CODECS.create("raw", shape=(3,), ratio=ratio)
