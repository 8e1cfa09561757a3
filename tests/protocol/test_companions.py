import pytest
import torch

from lightsplit.errors import ContractError
from lightsplit.protocol.companions import Companion


@pytest.mark.parametrize(
    "text", ["attention_mask int64 (batch, tokens)", "age float32 (batch, 3)"]
)
def test_the_text_of_a_companion_says_all_about_it(text):
    assert str(Companion.parse(text)) == text


@pytest.mark.parametrize("text", ["", "mask", "mask complex64 (batch)", "mask int64"])
def test_a_term_that_is_no_companion_is_refused(text):
    with pytest.raises(ContractError, match="expected a companion such as"):
        Companion.parse(text)


def test_a_companion_is_described_by_a_tensor_of_the_example():
    mask = torch.ones(2, 7, dtype=torch.bool)
    found = Companion.like("mask", mask, {"batch": 2, "tokens": 7})
    assert str(found) == "mask uint8 (batch, tokens)"
    assert found.spec({"batch": 4, "tokens": 9}).shape == (4, 9)


def test_only_the_places_of_batch_and_tokens_vary():
    square = torch.zeros(2, 7, 7)
    found = Companion.like("bias", square, {"batch": 2, "tokens": 7})
    assert found.shape == ("batch", "tokens", 7)


def test_a_type_that_cannot_be_sent_is_refused():
    with pytest.raises(ContractError, match="'z' cannot be shared"):
        Companion.like("z", torch.zeros(2, dtype=torch.complex64), {"batch": 2})
