import pytest
import torch
from torch import nn

from lightsplit.codecs import Code
from lightsplit.errors import CodecError, ConfigError, ProtocolError
from lightsplit.protocol import CodeMessage, EncryptedOutput, frame_bytes
from lightsplit.transports.homomorphic import (
    Encrypting,
    cipher_bytes,
    evaluate,
    linear_map,
)


def test_a_linear_function_is_found_exactly():
    layer = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4).eval(), nn.Linear(4, 3))
    found = linear_map(layer, 6)
    rows = torch.randn(5, 6)
    torch.testing.assert_close(rows @ found.matrix + found.bias, layer(rows))
    assert found.shape == (3,)


@pytest.mark.parametrize("bend", [nn.ReLU(), nn.Tanh(), nn.Softmax(dim=1)])
def test_a_function_that_bends_is_refused(bend):
    with pytest.raises(ConfigError, match="this one is not linear"):
        linear_map(nn.Sequential(nn.Linear(6, 4), bend), 6)


def message(rows, **more):
    return CodeMessage(1, 2, Code(rows), is_training=False, **more)


@pytest.mark.slow
def test_the_server_computes_what_it_cannot_read():
    pytest.importorskip("tenseal")
    layer, rows = nn.Linear(6, 3), torch.randn(5, 6)
    sent = []

    def serve(request):
        sent.append(request)
        if isinstance(request, CodeMessage):
            return None
        result = evaluate(request.ciphertext, linear_map(layer, 6))
        return EncryptedOutput(request.client, request.step, result)

    encrypting = Encrypting(serve, (3,))
    reply = encrypting(message(rows))
    torch.testing.assert_close(reply.output.values, layer(rows), atol=1e-5, rtol=1e-5)
    assert rows.numpy().tobytes()[:8] not in sent[0].ciphertext
    assert len(sent[0].ciphertext) <= cipher_bytes(6, 3)
    assert encrypting.cost.sent_bytes == frame_bytes(sent[0])
    (plain,) = sent[1:]  # to measure what the same costs in the clear
    assert plain.code.values.shape == rows.shape
    assert not plain.code.values.any()
    assert 0 < encrypting.cost.plain_seconds < encrypting.cost.seconds
    again = encrypting._encrypted(rows)  # fresh noise: equal codes look different
    assert again != sent[0].ciphertext
    with pytest.raises(ProtocolError, match="expected 4 encrypted values"):
        evaluate(again, linear_map(nn.Linear(4, 3), 4))


@pytest.mark.slow
def test_what_would_travel_in_the_clear_is_refused():
    pytest.importorskip("tenseal")
    encrypting = Encrypting(lambda _: None, (3,))
    rows = torch.randn(2, 6)
    with pytest.raises(ConfigError, match="training is not encrypted"):
        encrypting(CodeMessage(0, 0, Code(rows)))
    with pytest.raises(CodecError, match="numbers alone"):
        encrypting(message(rows, companions=(rows,)))
    with pytest.raises(CodecError, match="at most 4096 samples"):
        encrypting(message(torch.zeros(4097, 1)))


@pytest.mark.slow
def test_keys_that_leave_no_room_for_a_product_are_refused():
    tenseal = pytest.importorskip("tenseal")
    keys = tenseal.context(
        tenseal.SCHEME_TYPE.CKKS, poly_modulus_degree=8192, coeff_mod_bit_sizes=[60, 60]
    )
    keys.global_scale = 2.0**40
    public = keys.serialize(save_secret_key=False)
    values = tenseal.plain_tensor(torch.randn(1, 1, 6).double().tolist())
    code = tenseal.ckks_tensor(keys, values, batch=True).serialize()
    sent = len(public).to_bytes(8, "little") + public + code
    with pytest.raises(ProtocolError, match="ciphertext"):
        evaluate(sent, linear_map(nn.Linear(6, 3), 6))
