import pytest
import torch

from lightsplit.codecs import CODECS
from lightsplit.errors import CodecError, ConfigError
from lightsplit.objectives.bits import (
    binary_entropy,
    check_bits,
    check_classes,
    one_hot,
)


def test_the_entropy_of_a_bit_is_that_of_the_formula_and_finite_at_the_ends():
    ones = torch.tensor([0.1, 0.3, 0.9], requires_grad=True)
    expected = -(ones * ones.log2() + (1 - ones) * (1 - ones).log2())
    torch.testing.assert_close(binary_entropy(ones), expected)
    assert binary_entropy(torch.tensor([0.0, 1.0])).tolist() == [0, 0]


@pytest.mark.parametrize("name", ["raw", "fsq", "lightsplit-f"])
def test_a_code_that_is_not_of_bits_is_refused_with_one_that_is(name):
    codec = CODECS.create(name, shape=(32,))
    with pytest.raises(ConfigError, match=f"mine needs .* lightsplit-b, got '{name}'"):
        check_bits("mine", codec)
    check_bits("mine", CODECS.create("lightsplit-b", shape=(32,)))


def test_labels_that_are_no_classes_are_refused():
    with pytest.raises(ConfigError, match="mine needs labels that are classes"):
        check_classes("mine", None)
    with pytest.raises(CodecError, match="expected one class per sample"):
        one_hot(torch.zeros(3, 2), 4)
