"""A split step changes every weight as the unsplit step does."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from lightsplit.codecs import CODECS
from lightsplit.objectives import within_class_compaction
from lightsplit.runtime import Client, ClientSide, Server, ServerSide

pytestmark = pytest.mark.slow


def train_whole(model, batches, optimizer):
    """The ordinary loop, with no trace of LightSplit in it."""
    model.train()
    optimizer = optimizer(model.parameters())
    for inputs, labels in batches:
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()


def train_in_one_graph(pair, batches, optimizer, wcc):
    """Head, codec, backbone and tail in one autograd graph with one optimizer."""
    modules = (*pair.parts.whole.modules(), pair.codec.encoder, pair.codec.decoder)
    parameters = {p: None for module in modules for p in module.parameters()}
    optimizer = optimizer(list(parameters))
    for module in modules:
        module.train()
    for inputs, labels in batches:
        code = pair.codec.encoder(pair.parts.head(inputs))
        logits = pair.parts.tail(pair.parts.backbone(pair.codec.decoder(code)))
        loss = cross_entropy(logits, labels)
        if wcc is not None:
            loss = loss + wcc * within_class_compaction(code.values, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def assert_same_weights(first, second, **tolerance):
    ours, theirs = first.state_dict(), second.state_dict()
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], msg=name, **tolerance)


@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_twenty_raw_split_steps_equal_twenty_unsplit_ones(
    pair, make_network, make_batches, optimizer, topology
):
    whole = make_network()
    train_whole(whole, make_batches(), optimizer)
    split = pair("raw", topology=topology, optimizer=optimizer)
    for inputs, labels in make_batches():
        split.client.step(inputs, labels)
    assert_same_weights(split.model, whole, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "codec", ["lightsplit-f", "lightsplit-l", "learned-1x1", "topk"]
)
@pytest.mark.parametrize("wcc", [0.0, 0.05])
def test_two_graphs_and_two_optimizers_equal_one_of_each(
    pair, make_batches, compaction, optimizer, codec, wcc
):
    whole = pair(codec, optimizer=optimizer)
    train_in_one_graph(whole, make_batches(), optimizer, wcc)
    split = pair(codec, optimizer=optimizer, objectives=compaction(wcc))
    for inputs, labels in make_batches():
        split.client.step(inputs, labels)
    for ours, theirs in [
        (split.model, whole.model),
        (split.codec.encoder, whole.codec.encoder),
        (split.codec.decoder, whole.codec.decoder),
    ]:
        assert_same_weights(ours, theirs, rtol=1e-3, atol=1e-5)


def test_a_codec_at_the_back_cut_gives_the_gradients_of_one_graph(
    pair, make_batches, optimizer
):
    whole, split = pair("lightsplit-f"), pair("lightsplit-f")
    back = CODECS.create("lightsplit-f", shape=(12,), ratio=2)
    model = torch.nn.ModuleList([whole.model])
    one = optimizer(model.parameters())
    server = Server(
        ServerSide(split.parts.backbone, split.codec, optimizer, output_codec=back)
    )
    side = ClientSide(
        split.parts.head, split.parts.tail, split.codec, optimizer, output_codec=back
    )
    client = Client(side, server.handle)
    for inputs, labels in make_batches():
        model.train()
        code = whole.codec.encoder(whole.parts.head(inputs))
        output = whole.parts.backbone(whole.codec.decoder(code))
        logits = whole.parts.tail(back.decoder(back.encoder(output)))
        one.zero_grad()
        cross_entropy(logits, labels).backward()
        one.step()
        client.step(inputs, labels)
    assert_same_weights(split.model, whole.model, rtol=1e-3, atol=1e-5)


def test_no_compaction_and_compaction_of_strength_zero_are_the_same(
    pair, make_batches, optimizer
):
    without = pair("lightsplit-f", optimizer=optimizer)
    train_in_one_graph(without, make_batches(), optimizer, wcc=None)
    zero = pair("lightsplit-f", optimizer=optimizer)
    train_in_one_graph(zero, make_batches(), optimizer, wcc=0.0)
    assert_same_weights(without.model, zero.model, rtol=0, atol=0)


def test_the_gradient_at_the_head_is_r_times_both_gradients_at_the_code(
    pair, make_batches, compaction
):
    wcc = 0.3
    split = pair("lightsplit-f", objectives=compaction(wcc))
    (inputs, labels), *_ = make_batches()
    seen = {}

    def watch(_module, _inputs, activation):
        activation.register_hook(lambda g: seen.update(activation=g.clone()))

    split.parts.head.register_forward_hook(watch)
    handle = split.server.handle

    def spy(request):
        reply = handle(request)
        seen[reply.kind] = reply
        seen[request.kind] = request
        return reply

    split.client.send = spy
    split.client.step(inputs, labels)
    code = seen["code"].code.values.clone().requires_grad_()
    within_class_compaction(code, labels).backward()
    combined = seen["code_gradient"].gradient + wcc * code.grad
    expected = combined @ split.codec.encoder.projection.matrix().T
    torch.testing.assert_close(
        seen["activation"].flatten(1), expected, rtol=1e-4, atol=1e-6
    )
