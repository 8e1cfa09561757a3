import pytest
import torch

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import CodecError, ProtocolError
from lightsplit.protocol import CodeMessage, OutputGradient
from lightsplit.runtime import Server, ServerSide
from lightsplit.splitting import split


def code_of(pair, batch):
    with torch.no_grad():
        return pair.side.encode(batch)


def test_another_step_cannot_begin_while_one_is_open(pair, make_batches):
    ours = pair("lightsplit-f")
    (first, _), (second, _) = make_batches(2)
    ours.server.handle(CodeMessage(0, 0, code_of(ours, first)))
    with pytest.raises(ProtocolError, match="step 0 of client 0 is still open"):
        ours.server.handle(CodeMessage(1, 0, code_of(ours, second)))


def test_a_refused_intruder_leaves_the_open_step_as_it_was(pair, make_batches):
    (first, _), (second, _) = make_batches(2)
    gradients = []
    for has_intruder in (False, True):
        ours = pair("lightsplit-f")
        code, other = code_of(ours, first), code_of(ours, second)
        ours.server.handle(CodeMessage(0, 0, code))
        if has_intruder:
            with pytest.raises(ProtocolError):
                ours.server.handle(CodeMessage(1, 0, other))
            with pytest.raises(ProtocolError):
                ours.server.handle(OutputGradient(1, 0, torch.ones(8, 12)))
            ours.server.handle(CodeMessage(1, 0, other, is_training=False))
        reply = ours.server.handle(OutputGradient(0, 0, torch.ones(8, 12)))
        gradients.append((reply.gradient, ours.server.side.state()))
    (calm, calm_state), (disturbed, disturbed_state) = gradients
    assert torch.equal(calm, disturbed)
    assert all(torch.equal(v, disturbed_state[k]) for k, v in calm_state.items())


def test_a_gradient_is_applied_once(pair, make_batches):
    ours = pair("lightsplit-f")
    ours.server.handle(CodeMessage(0, 0, code_of(ours, make_batches(1)[0][0])))
    ours.server.handle(OutputGradient(0, 0, torch.ones(8, 12)))
    with pytest.raises(ProtocolError, match="step 0 of client 0 has sent no code"):
        ours.server.handle(OutputGradient(0, 0, torch.ones(8, 12)))


def test_an_abandoned_step_makes_room_and_leaves_no_trace(pair, make_batches):
    ours = pair("lightsplit-l")
    code = code_of(ours, make_batches(1)[0][0])
    before = {k: v.clone() for k, v in ours.server.side.state().items()}
    ours.server.handle(CodeMessage(0, 0, code))
    assert not torch.equal(
        ours.server.side.state()["backbone.4.running_mean"],
        before["backbone.4.running_mean"],
    )
    ours.server.abandon_step()
    after = ours.server.side.state()
    assert all(torch.equal(after[name], before[name]) for name in before)
    ours.server.handle(CodeMessage(1, 0, code))


def test_a_reply_may_leave_before_the_update_but_nothing_overtakes_it(
    pair, make_batches
):
    eager, lazy = pair("lightsplit-f"), pair("lightsplit-f")
    lazy.client.send = lazy.server.answer
    for inputs, labels in make_batches(3):
        eager.client.step(inputs, labels)
        lazy.client.step(inputs, labels)
    weight = "backbone.3.weight"
    assert not torch.equal(
        lazy.server.side.state()[weight], eager.server.side.state()[weight]
    )
    lazy.server.settle()
    ours, theirs = lazy.server.side.state(), eager.server.side.state()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_code_or_gradient_of_another_shape_is_refused(pair, make_batches):
    ours = pair("lightsplit-f")
    with pytest.raises(CodecError, match=r"\(8, 36\).*\(8, 35\)"):
        ours.server.handle(CodeMessage(0, 0, Code(torch.zeros(8, 35))))
    ours.server.handle(CodeMessage(0, 0, code_of(ours, make_batches(1)[0][0])))
    with pytest.raises(ProtocolError, match=r"\(8, 12\), got .*\(8, 13\)"):
        ours.server.handle(OutputGradient(0, 0, torch.zeros(8, 13)))


def test_a_frozen_backbone_keeps_weights_and_statistics_while_the_lift_back_learns(
    pair, make_network, make_batches
):
    model = make_network()
    parts = split(model, head_until="1", tail_from="9")
    codec = CODECS.create("lightsplit-l", shape=(4, 6, 6), ratio=4, hidden=8)
    optimizer = lambda p: torch.optim.SGD(p, lr=0.1)  # noqa: E731
    server = Server(ServerSide(parts.backbone, codec, optimizer, freeze_backbone=True))
    ours = pair("raw")
    client = type(ours.client)(
        type(ours.side)(parts.head, parts.tail, codec, optimizer), server.handle
    )
    frozen = {k: v.clone() for k, v in parts.backbone.state_dict().items()}
    lift_back = {k: v.clone() for k, v in codec.decoder.state_dict().items()}
    for inputs, labels in make_batches(3):
        client.step(inputs, labels)
    after = parts.backbone.state_dict()
    assert all(torch.equal(v, after[k]) for k, v in frozen.items())
    after = codec.decoder.state_dict()
    assert any(not torch.equal(v, after[k]) for k, v in lift_back.items())


def test_a_server_without_trainable_weights_still_answers(pair, make_network):
    parts = split(make_network(), head_until="1", tail_from="9")
    codec = CODECS.create("lightsplit-f", shape=(4, 6, 6), ratio=4)
    side = ServerSide(
        parts.backbone,
        codec,
        lambda p: torch.optim.SGD(p, lr=0.1),
        freeze_backbone=True,
    )
    assert side.optimizer is None
    server = Server(side)
    server.handle(CodeMessage(0, 0, Code(torch.rand(8, 36))))
    reply = server.handle(OutputGradient(0, 0, torch.ones(8, 12)))
    assert reply.gradient.abs().sum() > 0
