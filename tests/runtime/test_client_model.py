"""The client's half trains in anybody's loop as it does in ``Client.step``."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from lightsplit import ClientModel
from lightsplit.codecs import CODECS
from lightsplit.errors import ConfigError
from lightsplit.formats import WireFormats
from lightsplit.runtime import Client, ClientSide, Secret, Server, ServerSide

SGD = partial(torch.optim.SGD, lr=0.1, momentum=0.9)


class Ends:
    """A head, a backbone and a tail with dropout in each, in either topology."""

    def __init__(self, topology="u", codec="lightsplit-f", formats="fp32"):
        torch.manual_seed(5)
        head = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout())
        backbone = nn.Sequential(nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(8, 7))
        tail = nn.Sequential(nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(7, 3))
        ratio = 1 if codec == "raw" else 2
        self.codec = CODECS.create(codec, shape=(8,), ratio=ratio)
        self.formats = WireFormats(formats, seed=9)
        mine, theirs = (tail, None) if topology == "u" else (None, tail)
        self.make_side = partial(ClientSide, head, mine, self.codec)
        self.server = Server(
            ServerSide(backbone, self.codec, SGD, tail=theirs),
            seed=9,
            formats=self.formats,
        )
        self.options = {"secret": Secret(9), "index": 4, "formats": self.formats}


def batches(count=5, size=8):
    generator = torch.Generator().manual_seed(3)
    return [
        (
            torch.rand(size, 6, generator=generator),
            torch.randint(3, (size,), generator=generator),
        )
        for _ in range(count)
    ]


def train_by_step(ends):
    client = Client(ends.make_side(SGD), ends.server.handle, **ends.options)
    losses = [client.step(*batch) for batch in batches()]
    return losses, client.model


def train_by_hand(ends):
    """The ordinary loop: nothing in it but torch."""
    model = ClientModel(ends.make_side(), ends.server.handle, **ends.options).train()
    optimizer, losses = SGD(model.parameters()), []
    for inputs, labels in batches():
        if model.side.has_tail:
            loss = cross_entropy(model(inputs), labels)
        else:
            loss = model(inputs, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


@pytest.mark.parametrize("formats", ["fp32", "int8"])
@pytest.mark.parametrize("codec", ["raw", "lightsplit-f", "topk"])
@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_a_loop_by_hand_gives_the_weights_of_client_step(topology, codec, formats):
    first, second = (Ends(topology, codec, formats) for _ in range(2))
    losses, stepped = train_by_step(first)
    by_hand, looped = train_by_hand(second)
    assert losses == by_hand
    assert stepped.steps == looped.steps == 5
    ours, theirs = stepped.state_dict(), looped.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    one, other = first.server.side.state(), second.server.side.state()
    assert all(torch.equal(one[name], other[name]) for name in one)
    inputs = batches(1)[0][0]
    with torch.no_grad():
        assert torch.equal(stepped.eval()(inputs), looped.eval()(inputs))


@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_it_predicts_in_evaluation_mode_and_without_gradients(topology):
    ends = Ends(topology)
    requests = []

    def send(request):
        requests.append(request)
        return ends.server.handle(request)

    model = ClientModel(ends.make_side(), send)
    inputs = batches(1)[0][0]
    evaluated = model.eval()(inputs)
    with torch.no_grad():
        unrecorded = model.train()(inputs)
    for logits in (evaluated, unrecorded):
        assert logits.shape == (8, 3)
        assert not logits.requires_grad
    assert [request.is_training for request in requests] == [False, False]
    assert model.steps == 0


def test_it_holds_the_modules_of_its_side_and_no_others():
    ends = Ends()
    side = ends.make_side()
    model = ClientModel(side, ends.server.handle)
    assert {name for name, _ in model.named_children()} == {"head", "encoder", "tail"}
    assert model.state_dict().keys() == side.modules.state_dict().keys()
    theirs = {id(p) for p in ends.server.side.modules.parameters()}
    assert not theirs & {id(p) for p in model.parameters()}


def test_labels_are_passed_only_where_the_server_needs_them():
    inputs, labels = batches(1)[0]
    ends = Ends("u")
    model = ClientModel(ends.make_side(), ends.server.handle)
    with pytest.raises(ConfigError, match="labels stay with it; pass them to your"):
        model(inputs, labels)
    ends = Ends("vanilla")
    model = ClientModel(ends.make_side(), ends.server.handle)
    with pytest.raises(ConfigError, match=r"call model\(inputs, labels\)"):
        model(inputs)


@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_messages_belong_to_no_graph(topology):
    ends, seen = Ends(topology, "topk"), []

    def send(request):
        reply = ends.server.handle(request)
        seen.extend([request, reply])
        return reply

    client = Client(ends.make_side(SGD), send)
    client.step(*batches(1)[0])
    for message in seen:
        for name in ("code", "output", "written"):
            values, side = getattr(message, name, (torch.zeros(1), ()))
            assert not any(tensor.requires_grad for tensor in (values, *side))


def test_in_the_vanilla_topology_a_scaled_loss_scales_the_clients_gradient():
    gradients = []
    for scale in (1.0, 0.5):
        ends = Ends("vanilla")
        model = ClientModel(ends.make_side(), ends.server.handle)
        (model(*batches(1)[0]) * scale).backward()
        gradients.append(model.head[0].weight.grad)
    assert torch.equal(gradients[0] * 0.5, gradients[1])


@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_a_frozen_head_still_lets_the_server_learn(topology):
    ends = Ends(topology)
    side = ends.make_side()
    side.modules["head"].requires_grad_(False)
    before = {k: v.clone() for k, v in ends.server.side.state().items()}
    model = ClientModel(side, ends.server.handle)
    inputs, labels = batches(1)[0]
    if topology == "u":
        cross_entropy(model(inputs), labels).backward()
    else:
        model(inputs, labels).backward()
    after = ends.server.side.state()
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_an_error_of_the_server_comes_through_the_backward_pass():
    ends = Ends()

    def send(request):
        if request.kind == "output_gradient":
            raise ConnectionResetError("gone")
        return ends.server.handle(request)

    model = ClientModel(ends.make_side(), send)
    inputs, labels = batches(1)[0]
    loss = cross_entropy(model(inputs), labels)
    with pytest.raises(ConnectionResetError, match="gone"):
        loss.backward()
    assert model.steps == 0


def test_a_client_needs_an_optimizer_where_there_is_something_to_train():
    ends = Ends()
    with pytest.raises(ConfigError, match="expected a side with an optimizer"):
        Client(ends.make_side(), ends.server.handle)
