"""Runs in which no gradient is sent."""

from functools import partial

import pytest
import torch
from torch import nn

from lightsplit.codecs import CODECS
from lightsplit.errors import ConfigError, ProtocolError
from lightsplit.objectives import ClassCodes, WeightedObjective
from lightsplit.protocol import OutputGradient
from lightsplit.runtime import Client, ClientSide, Server, ServerSide

SGD = partial(torch.optim.SGD, lr=0.1)
INPUTS, LABELS = torch.rand(6, 8), torch.arange(6) % 3


def make(*, codec="raw", objectives=(), **options):
    """Return a client, its server and the transcript."""
    made = CODECS.create(codec, shape=(6,), **options)
    side = ServerSide(nn.Linear(6, 5), made, SGD, freeze_backbone=True)
    server, transcript = Server(side, forward_only=True), []

    def send(request):
        reply = server.handle(request)
        transcript.extend([request, reply])
        return reply

    ours = ClientSide(
        nn.Linear(8, 6),
        nn.Linear(5, 3),
        made,
        SGD,
        objectives=[WeightedObjective(o(made), 1.0) for o in objectives],
    )
    return Client(ours, send, forward_only=True), server, transcript


def changed(side, step):
    before = {name: value.clone() for name, value in side.state().items()}
    step()
    return {
        name for name, value in side.state().items() if not value.equal(before[name])
    }


def test_the_transcript_holds_codes_and_outputs_and_no_gradient():
    client, _, transcript = make(objectives=[partial(ClassCodes, classes=3)])
    for _ in range(3):
        client.step(INPUTS, LABELS)
    assert [message.kind for message in transcript] == ["code", "output"] * 3
    assert [message.step for message in transcript] == [0, 0, 1, 1, 2, 2]


def test_the_tail_learns_from_its_loss_and_the_head_from_objectives():
    client, server, _ = make(objectives=[partial(ClassCodes, classes=3)])
    mine = changed(client.side, lambda: client.step(INPUTS, LABELS))
    assert {"head.weight", "tail.weight"} <= mine
    alone, server, _ = make()
    mine = changed(alone.side, lambda: alone.step(INPUTS, LABELS))
    assert mine == {"tail.weight", "tail.bias"}
    assert changed(server.side, lambda: alone.step(INPUTS, LABELS)) == set()


def test_messages_are_the_same_for_any_labels():
    transcripts = []
    for labels in (LABELS, LABELS.flip(0)):
        torch.manual_seed(0)
        client, _, transcript = make()
        client.step(INPUTS, labels)
        client.step(INPUTS, labels)
        transcripts.append([m.code.values for m in transcript if m.kind == "code"])
    assert all(map(torch.equal, *transcripts))


def test_a_gradient_is_refused():
    _, server, _ = make()
    with pytest.raises(ProtocolError, match="no gradient is sent in this run"):
        server.handle(OutputGradient(0, 0, torch.zeros(6, 5)))


@pytest.mark.parametrize(
    "options",
    [
        {"codec": "lightsplit-b", "bits": 4},
        {"codec": "lightsplit-l", "ratio": 2},
        {"codec": "fsq", "values": 4},
    ],
)
def test_a_lift_that_would_stay_untrained_is_refused(options):
    with pytest.raises(ConfigError, match="the server trains nothing"):
        make(**options)
    if options["codec"] != "lightsplit-l":
        make(**options, lift="fixed")
