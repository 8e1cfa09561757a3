import pytest
import torch

from lightsplit.errors import ProtocolError
from lightsplit.protocol import CodeGradient, OutputMessage
from lightsplit.runtime import Client


def test_clients_with_one_shared_side_equal_one_client_over_the_same_order(
    pair, make_batches
):
    alone, many = pair("lightsplit-f"), pair("lightsplit-f")
    clients = [Client(many.side, many.server.handle, index=index) for index in range(3)]
    for number, (inputs, labels) in enumerate(make_batches(12)):
        alone.client.step(inputs, labels)
        clients[number % 3].step(inputs, labels)
    theirs = many.model.state_dict()
    assert all(torch.equal(v, theirs[k]) for k, v in alone.model.state_dict().items())


def test_a_step_leaves_the_global_generator_alone(pair, make_batches):
    split = pair("lightsplit-f")
    before = torch.get_rng_state()
    split.client.step(*make_batches(1)[0])
    assert torch.equal(torch.get_rng_state(), before)


def test_prediction_trains_nothing(pair, make_batches):
    split = pair("lightsplit-l")
    for inputs, labels in make_batches(2):
        split.client.step(inputs, labels)
    before = {k: v.clone() for k, v in split.model.state_dict().items()}
    logits = split.client.predict(make_batches(1)[0][0])
    assert logits.shape == (8, 3)
    assert not logits.requires_grad
    assert all(torch.equal(v, before[k]) for k, v in split.model.state_dict().items())


def test_prediction_with_the_raw_codec_is_the_whole_models(pair, make_batches):
    for topology in ("u", "vanilla"):
        split = pair("raw", topology=topology)
        split.model.eval()
        inputs, _ = make_batches(1)[0]
        torch.testing.assert_close(split.client.predict(inputs), split.model(inputs))


def test_a_reply_of_the_wrong_kind_is_refused(pair, make_batches):
    split = pair("raw")
    inputs, labels = make_batches(1)[0]
    split.client.send = lambda request: CodeGradient(0, 0, request.code.values)
    with pytest.raises(ProtocolError, match="expected an output, got CodeGradient"):
        split.client.step(inputs, labels)
    vanilla = pair("raw", topology="vanilla")
    vanilla.client.send = lambda request: OutputMessage(0, 0, request.code)
    with pytest.raises(ProtocolError, match="expected a code gradient"):
        vanilla.client.step(inputs, labels)
    vanilla.client.send = lambda request: CodeGradient(0, 0, request.code.values)
    with pytest.raises(ProtocolError, match="with its loss"):
        vanilla.client.step(inputs, labels)


def test_a_head_without_weights_is_left_alone(pair, make_batches, compaction):
    split = pair("lightsplit-f", objectives=compaction(0.1))
    split.parts.head.requires_grad_(False)
    before = split.parts.head.state_dict()["0.weight"].clone()
    split.client.step(*make_batches(1)[0])
    assert torch.equal(split.parts.head.state_dict()["0.weight"], before)
