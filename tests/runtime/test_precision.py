"""bf16 computes the model, and nothing else, in bfloat16."""

import pytest
import torch
from torch import nn

from lightsplit.errors import ConfigError
from lightsplit.runtime import Precision


def dtypes_within(module, call):
    """Return the dtypes of what ``module`` and its layers return during ``call``."""
    found = []

    def look(_module, _inputs, output):
        found.append(output.dtype)

    handles = [
        layer.register_forward_hook(look)
        for layer in module.modules()
        if isinstance(layer, nn.Linear | nn.Conv2d)
    ]
    call()
    for handle in handles:
        handle.remove()
    return set(found)


@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_the_model_is_computed_in_bf16_and_messages_are_fp32(
    topology, pair, make_batches
):
    ours = pair("lightsplit-f", topology=topology)
    ours.client.side.precision = ours.server.side.precision = Precision("bf16")
    crossed, plain = [], ours.client.send

    def send(request):
        reply = plain(request)
        for message in (request, reply):
            for name in ("code", "output"):
                if hasattr(message, name):
                    crossed.append(getattr(message, name).values.dtype)
            if hasattr(message, "gradient"):
                crossed.append(message.gradient.dtype)
        return reply

    ours.client.send = send
    inputs, labels = make_batches(1)[0]
    found = dtypes_within(ours.model, lambda: ours.client.step(inputs, labels))
    assert found == {torch.bfloat16}
    assert set(crossed) == {torch.float32}
    assert {p.dtype for p in ours.model.parameters()} == {torch.float32}
    assert ours.client.predict(inputs).dtype == torch.float32


def test_bf16_is_close_to_fp32_and_not_equal(pair, make_batches):
    inputs = make_batches(1)[0][0]
    exact, rounded = pair("raw"), pair("raw")
    rounded.client.side.precision = rounded.server.side.precision = Precision("bf16")
    usual, ours = exact.client.predict(inputs), rounded.client.predict(inputs)
    assert not torch.equal(ours, usual)
    torch.testing.assert_close(ours, usual, atol=0.05, rtol=0.05)


def test_an_unknown_precision_is_refused():
    with pytest.raises(ConfigError, match="unknown precision 'fp8'"):
        Precision("fp8")
