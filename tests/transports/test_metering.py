from functools import partial

import pytest
import torch
from torch import nn

from lightsplit.codecs import CODECS, Code
from lightsplit.protocol import CodeMessage
from lightsplit.protocol.messages import LOSS_BYTES
from lightsplit.runtime import Client, ClientSide, Server, ServerSide
from lightsplit.splitting import split
from lightsplit.transports import KINDS, ByteMeter, through

SAMPLES, OUTPUTS, CLASSES = 6, 5, 3
INPUTS, LABELS = torch.rand(SAMPLES, 2, 4, 4), torch.arange(SAMPLES) % CLASSES
SGD = partial(torch.optim.SGD, lr=0.1)


# none sends nothing, and the bytes of franken follow from no shape.
every_codec = pytest.mark.parametrize(
    "name", [name for name in CODECS.names() if name not in ("none", "franken")]
)


def metered(name, topology):
    """Return a codec, a client that sends through a meter, and the meter."""
    model = nn.Sequential(
        nn.Conv2d(2, 4, 1), nn.Flatten(), nn.Linear(64, OUTPUTS), nn.Linear(5, CLASSES)
    )
    parts = split(model, head_until="0", tail_from="3")
    options = {"signed": True} if name == "mask-sparse" else {}
    codec, meter = CODECS.create(name, shape=(4, 4, 4), **options), ByteMeter()
    ours, theirs = (parts.tail, None) if topology == "u" else (None, parts.tail)
    server = Server(ServerSide(parts.backbone, codec, SGD, tail=theirs))
    side = ClientSide(parts.head, ours, codec, SGD)
    return codec, Client(side, through(meter, server.handle)), meter


def counted(**expected):
    return {**dict.fromkeys(KINDS, 0), **expected}


def payload(meter):
    """Return what was counted without framing, which test_framing.py is about."""
    counts = meter.by_kind()
    assert counts.pop("total") == sum(counts.values())
    return counts | {"framing": 0}


@every_codec
def test_a_u_shaped_step_costs_its_four_messages(name):
    codec, client, meter = metered(name, "u")
    client.step(INPUTS, LABELS)
    back = codec.gradient_layout(codec.layout(SAMPLES).values)
    assert payload(meter) == counted(
        code=codec.packed_layout(SAMPLES).code_bytes,
        output=4 * SAMPLES * OUTPUTS,
        output_gradient=4 * SAMPLES * OUTPUTS,
        code_gradient=back.code_bytes,
    )


@every_codec
def test_a_vanilla_step_costs_code_labels_gradient_and_loss(name):
    codec, client, meter = metered(name, "vanilla")
    client.step(INPUTS, LABELS)
    back = codec.gradient_layout(codec.layout(SAMPLES).values)
    assert payload(meter) == counted(
        code=codec.packed_layout(SAMPLES).code_bytes,
        labels=8 * SAMPLES,
        code_gradient=back.code_bytes + LOSS_BYTES,
    )


@pytest.mark.parametrize(("topology", "width"), [("u", OUTPUTS), ("vanilla", CLASSES)])
def test_evaluation_is_counted_apart_and_sends_no_labels(topology, width):
    codec, client, meter = metered("topk", topology)
    client.predict(INPUTS)
    sent = codec.packed_layout(SAMPLES).code_bytes + 4 * SAMPLES * width
    assert payload(meter) == counted(evaluation=sent)


def test_two_steps_cost_twice_as_much_as_one():
    _, client, meter = metered("lightsplit-f", "u")
    client.step(INPUTS, LABELS)
    once = payload(meter)
    client.step(INPUTS, LABELS)
    assert payload(meter) == {kind: 2 * count for kind, count in once.items()}


def test_bytes_sent_outside_a_step_are_added():
    meter = ByteMeter()
    meter.add("hand_off", 7)
    meter.add("hand_off", 2)
    meter.add("setup", 5)
    assert payload(meter) == counted(hand_off=9, setup=5)


def test_a_restored_meter_continues_from_the_saved_counts():
    _, client, meter = metered("raw", "u")
    client.step(INPUTS, LABELS)
    other = ByteMeter()
    other.add("labels", 99)
    other.restore(meter.by_kind())
    assert other.by_kind() == meter.by_kind()
    other.add("setup", 1)
    assert other.by_kind()["total"] == meter.by_kind()["total"] + 1


def test_a_request_that_fails_is_not_counted():
    def broken(_):
        raise ConnectionError

    meter = ByteMeter()
    with pytest.raises(ConnectionError):
        through(meter, broken)(CodeMessage(0, 0, Code(INPUTS)))
    assert meter.by_kind()["total"] == 0
