from functools import partial

import pytest
import torch
from torch import nn

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ProtocolError
from lightsplit.protocol import CodeMessage, OutputGradient
from lightsplit.runtime import ServerSide
from lightsplit.runtime.accumulating import MOST_OPEN, AccumulatingServer


@pytest.fixture
def make_server():
    def make(rate=0.5, **options):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            backbone = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3))
        sgd = partial(torch.optim.SGD, lr=rate)
        side = ServerSide(backbone, CODECS.create("raw", shape=(4,)), sgd)
        return AccumulatingServer(side, **options)

    return make


def forward(server, step=0, **more):
    generator = torch.Generator().manual_seed(step)
    code = Code(torch.rand(5, 4, generator=generator))
    return server.handle(CodeMessage(0, step, code, **more))


def backward(server, step=0, size=1.0):
    return server.handle(OutputGradient(0, step, torch.full((5, 3), size)))


def weight(server):
    return server.side.modules["backbone"][1].weight.detach().clone()


def test_gradients_add_up_until_they_are_applied(make_server):
    once, twice = make_server(), make_server()
    forward(once)
    backward(once, size=2.0)
    for _ in range(2):
        forward(twice)
        backward(twice)
    assert torch.equal(weight(once), weight(make_server()))
    for server in (once, twice):
        server.apply()
        server.settle()
    assert torch.allclose(weight(once), weight(twice))
    assert not torch.equal(weight(once), weight(make_server()))


def test_discarding_forgets_gradients_and_running_statistics(make_server):
    server = make_server()
    before = {name: one.clone() for name, one in server.side.state().items()}
    forward(server)
    backward(server)
    server.discard()
    server.apply()
    server.settle()
    after = server.side.state()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_saved_state_is_that_of_the_last_update(make_server):
    server = make_server()
    before = server.state()
    forward(server)
    assert all(torch.equal(before[name], server.state()[name]) for name in before)
    assert not torch.equal(server.side.buffers[0], before["backbone.0.running_mean"])
    server.load(before)
    assert torch.equal(server.side.buffers[0], before["backbone.0.running_mean"])


@pytest.mark.parametrize(
    ("rate", "base", "own"), [(0.1, 0.5, 0.1), (1.0, 2.0, 0.25), (0.0, 0.5, 0.0)]
)
def test_the_learning_rate_follows_the_clients(make_server, rate, base, own):
    server = make_server(rate=0.5)
    server.apply(rate, base)
    assert server.side.optimizer.param_groups[0]["lr"] == own


@pytest.mark.parametrize(
    ("rate", "base"), [(-1.0, 1.0), (1e9, 1.0), (1.0, 0.0), (float("nan"), 1.0)]
)
def test_an_absurd_learning_rate_is_refused(make_server, rate, base):
    with pytest.raises(ProtocolError, match="expected a learning rate of 0 to 1000"):
        make_server().apply(rate, base)


def settings(server):
    (group,) = server.side.optimizer.param_groups
    return {name: value for name, value in group.items() if name != "params"}


@pytest.mark.parametrize(
    ("limit", "rate"), [(1.0, 0.25), (1e6, 1e9)], ids=["norm", "rate"]
)
def test_an_update_that_is_refused_changes_neither_weights_nor_optimizer(
    make_server, limit, rate
):
    server = make_server(norm_limit=limit)
    forward(server)
    backward(server, size=0.9)
    before, as_set = weight(server), settings(server)
    with pytest.raises(ProtocolError, match=r"norm|learning rate"):
        server.apply(rate, 0.5)
    server.settle()
    assert torch.equal(weight(server), before)
    assert settings(server) == as_set


def test_clipping_bounds_the_update(make_server):
    server = make_server(rate=1.0, clip_norm=0.1)
    before = weight(server)
    forward(server)
    backward(server, size=100.0)
    server.apply()
    server.settle()
    assert (weight(server) - before).norm() <= 0.1001


def test_a_forward_pass_too_many_closes_the_oldest(make_server):
    server = make_server()
    for step in range(MOST_OPEN + 1):
        forward(server, step)
    backward(server, 1)
    with pytest.raises(ProtocolError, match="the forward pass of step 0 is not open"):
        backward(server, 0)


def test_autocast_computes_in_half_and_answers_in_float32(make_server):
    plain, half = forward(make_server()), forward(make_server(autocast=torch.bfloat16))
    assert half.output.values.dtype == torch.float32
    assert not torch.equal(plain.output.values, half.output.values)
    assert torch.allclose(plain.output.values, half.output.values, atol=0.05)


def test_labels_are_refused(make_server):
    with pytest.raises(ProtocolError, match="expected no labels"):
        forward(make_server(), labels=torch.zeros(5, dtype=torch.int64))


def test_frozen_weights_are_not_in_the_state_and_stay(make_server):
    server = make_server()
    layer = server.side.modules["backbone"][1]
    layer.weight.requires_grad_(False)
    state = server.state()
    assert "backbone.1.weight" not in state
    assert "backbone.1.bias" in state
    before = weight(server)
    server.load(state)
    assert torch.equal(weight(server), before)
