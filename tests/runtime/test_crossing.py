import pytest
import torch

from lightsplit.errors import CodecError, ProtocolError
from lightsplit.loops.agreement import make_crossing
from lightsplit.runtime.crossing import SAMPLES

MASK = torch.tensor([[1, 1, 0], [1, 1, 1]])


def tokens(**shared):
    activation, output = torch.rand(2, 3, 5), torch.rand(2, 3, 4)
    return activation, make_crossing(activation, output, shared)


def test_samples_cross_as_they_are():
    activation = torch.rand(2, 5)
    rows, sent = SAMPLES.send(activation, ())
    assert rows is activation
    assert sent == ()
    assert SAMPLES.received(rows, sent) == (rows, ())


def test_padding_is_not_sent_and_comes_out_as_zeros():
    activation, crossing = tokens(attention_mask=MASK)
    rows, sent = crossing.send(activation, [MASK])
    assert rows.shape == (5, 5)
    assert [one.dtype for one in sent] == [torch.uint8]
    received, (mask,) = crossing.received(rows, sent)
    assert torch.equal(received, activation * MASK[..., None])
    assert torch.equal(mask, MASK)
    assert mask.dtype == MASK.dtype


def test_without_a_mask_every_token_is_sent():
    activation, crossing = tokens()
    rows, sent = crossing.send(activation, ())
    assert rows.shape == (6, 5)
    received, shared = crossing.received(rows, sent)
    assert torch.equal(received, activation)
    assert shared == ()


def test_outputs_with_tokens_are_packed_as_well():
    activation, crossing = tokens(attention_mask=MASK)
    _, sent = crossing.send(activation, [MASK])
    output = torch.rand(2, 3, 4)
    rows = crossing.answered(output, sent)
    assert rows.shape == (5, 4)
    assert torch.equal(crossing.take(rows, sent), output * MASK[..., None])


def test_gradients_go_the_same_way():
    activation, crossing = tokens(attention_mask=MASK)
    activation.requires_grad_()
    rows, sent = crossing.send(activation, [MASK])
    crossing.received(rows, sent)[0].sum().backward()
    assert torch.equal(activation.grad, MASK[..., None].expand(2, 3, 5).float())


def test_other_shared_inputs_keep_their_types():
    kinds = torch.zeros(2, 3, dtype=torch.int64)
    activation, crossing = tokens(token_type_ids=kinds, attention_mask=MASK)
    _, sent = crossing.send(activation, [kinds, MASK])
    assert [one.dtype for one in sent] == [torch.uint8, torch.int64]
    received = crossing.received(torch.rand(5, 5), sent)[1]
    assert torch.equal(received[0], kinds)
    assert torch.equal(received[1], MASK)


def test_a_sequence_longer_than_the_contract_allows_is_refused():
    _, crossing = tokens()
    with pytest.raises(CodecError, match="expected sequences of up to 3 tokens, got 4"):
        crossing.send(torch.rand(2, 4, 5), ())


def test_a_mask_of_another_shape_is_refused():
    activation, crossing = tokens(attention_mask=MASK)
    with pytest.raises(CodecError, match=r"expected a mask of \(2, 3\)"):
        crossing.send(activation, [MASK[:1]])


def test_a_mask_that_does_not_fit_the_tokens_is_refused():
    _, crossing = tokens(attention_mask=MASK)
    with pytest.raises(ProtocolError, match="expected 5 tokens by the mask, got 4"):
        crossing.received(torch.rand(4, 5), [MASK.to(torch.uint8)])
