"""The interface can carry a codec whose code has no row of its own for each sample.

    sample 0 ┐                     ┌ half of row 0 times key 0
             ├ key · z, summed ─► row 0
    sample 1 ┘                     └ half of row 0 times key 1

It superposes pairs of samples under fixed signs, so B samples make ceil(B / 2) rows.
"""

import pytest
import torch

from lightsplit.codecs import Code, Codec, Decoder, Encoder, Layout, TensorSpec
from lightsplit.codecs.base import check_rows
from lightsplit.errors import CodecError

SIZE = 12


class Pairs(Codec):
    name = "pairs"

    def __init__(self, shape):
        super().__init__(shape, code_size=shape[0])
        keys = torch.tensor([[1.0] * SIZE, [1.0, -1.0] * (SIZE // 2)])
        self.encoder = SuperposingEncoder(keys)
        self.decoder = SeparatingDecoder(keys)

    @property
    def ratio(self):
        return 2.0

    @property
    def is_sample_wise(self):
        return False

    def layout(self, batch_size):
        count = TensorSpec((1,), torch.int32)
        return Layout(TensorSpec(((batch_size + 1) // 2, SIZE)), (count,))


class SuperposingEncoder(Encoder):
    def __init__(self, keys):
        super().__init__()
        self.keys = keys

    def forward(self, activation):
        check_rows(activation, (SIZE,))
        odd = activation.new_zeros(len(activation) % 2, SIZE)
        pairs = torch.cat([activation, odd]).view(-1, 2, SIZE)
        count = torch.tensor([len(activation)], dtype=torch.int32)
        return Code((pairs * self.keys).sum(dim=1), (count,))


class SeparatingDecoder(Decoder):
    def __init__(self, keys):
        super().__init__()
        self.keys = keys

    def forward(self, code):
        pairs = code.values.unsqueeze(1) * self.keys / 2
        return pairs.flatten(0, 1)[: int(code.side[0])]


@pytest.fixture
def codec():
    return Pairs(shape=(SIZE,))


@pytest.mark.parametrize("batch_size", [1, 2, 7, 8])
def test_the_layout_has_another_number_of_rows_than_the_batch(codec, batch_size):
    code = codec.encoder(torch.randn(batch_size, SIZE))
    codec.layout(batch_size).check(code)
    assert len(code.values) == (batch_size + 1) // 2
    assert not codec.is_sample_wise


@pytest.mark.parametrize("batch_size", [1, 2, 7, 8])
def test_a_decoded_activation_has_the_shape_of_the_original(codec, batch_size):
    activation = torch.randn(batch_size, SIZE)
    assert codec.decoder(codec.encoder(activation)).shape == activation.shape


def test_a_pair_shares_one_row_of_gradient(codec):
    activation = torch.randn(4, SIZE, requires_grad=True)
    sent = codec.encoder(activation)
    arrived = Code(sent.values.detach().requires_grad_(), sent.side)
    codec.decoder(arrived)[0].sum().backward()
    assert arrived.values.grad.shape == (2, SIZE)
    sent.values.backward(arrived.values.grad)
    assert activation.grad[1].abs().sum() > 0
    assert activation.grad[2:].abs().sum() == 0


def test_a_layout_for_another_batch_is_refused(codec):
    code = codec.encoder(torch.randn(4, SIZE))
    with pytest.raises(CodecError, match=r"expected a code of float32 \(3, 12\)"):
        codec.layout(6).check(code)
