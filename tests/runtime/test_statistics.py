"""Per-client statistics: which client's a message uses, and what they are worth."""

import pytest
import torch
from torch import nn

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ConfigError, ProtocolError, RunError
from lightsplit.protocol import CodeMessage, OutputGradient
from lightsplit.runtime import Server, ServerSide
from lightsplit.runtime.statistics import KINDS, Statistics, begin_with_first_batch

MEAN = "backbone.0.running_mean"


@pytest.fixture
def make_server(sgd):
    """Return what makes a server with one normalisation layer."""

    def make(kind):
        torch.manual_seed(1)
        backbone = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2))
        codec = CODECS.create("raw", shape=(3,))
        return Server(ServerSide(backbone, codec, sgd, normalisation=kind))

    return make


@pytest.fixture
def sgd():
    return lambda parameters: torch.optim.SGD(parameters, lr=0.1)


def numbers(client, step=0, rows=8):
    """Return a batch of a client whose activations lie around its own number."""
    generator = torch.Generator().manual_seed(step)
    return 10.0 * client + torch.randn(rows, 3, generator=generator)


def send(server, client, step=0, *, is_training=True, rows=8):
    code = Code(numbers(client, step, rows))
    message = CodeMessage(client, step, code, is_training=is_training)
    return server.handle(message).output.values


def train(server, clients=(0, 1), steps=30):
    for step in range(steps):
        for client in clients:
            output = send(server, client, step)
            server.handle(OutputGradient(client, step, torch.zeros_like(output)))
    return server


def mean_of(server, client):
    server.side.normalisation.switch_to(client)
    return float(server.side.modules["backbone"][0].running_mean.mean())


def test_every_client_has_an_average_of_its_own(make_server):
    server = train(make_server("per-client"))
    assert mean_of(server, 0) == pytest.approx(0, abs=0.5)
    assert mean_of(server, 1) == pytest.approx(10, abs=0.7)


def test_statistics_of_a_client_begin_with_its_first_batch(make_server):
    server = train(make_server("per-client"), steps=1)
    assert mean_of(server, 1) == pytest.approx(float(numbers(1).mean()))


def test_the_first_batches_count_alike_and_later_ones_as_usual():
    layer = nn.BatchNorm1d(1)
    begin_with_first_batch(layer)
    weights = []
    for _ in range(12):
        layer(torch.randn(4, 1))
        weights.append(layer.momentum)
    usual = [max(0.1, 1 / count) for count in range(1, 13)]
    assert weights == usual


def test_pretrained_statistics_are_not_forgotten():
    layer = nn.BatchNorm1d(1)
    layer.num_batches_tracked.fill_(500)
    begin_with_first_batch(layer)
    layer(torch.randn(4, 1))
    assert layer.momentum == 0.1


def test_one_average_over_different_clients_fits_none(make_server):
    """What normalised activations look like outside training, against zero."""
    found = {}
    for kind in ("shared", "per-client", "batch"):
        server = train(make_server(kind), steps=60)
        server.side.modules["backbone"][1] = nn.Identity()
        output = send(server, 1, is_training=False)
        found[kind] = float(output.mean().abs())
    assert found["shared"] > 2
    assert found["per-client"] < 0.4
    assert found["batch"] < 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_a_prediction_changes_no_state(kind, make_server):
    server = train(make_server(kind), steps=2)
    before = {name: value.clone() for name, value in server.side.state().items()}
    for client in (0, 1, 5):
        send(server, client, is_training=False)
    after = server.side.state()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], before[name]) for name in before)


@pytest.mark.parametrize("kind", KINDS)
def test_a_prediction_between_code_and_gradient_changes_nothing(kind, make_server):
    states = []
    for is_disturbed in (False, True):
        server = train(make_server(kind), steps=1)
        output = send(server, 0, 1)
        if is_disturbed:
            send(server, 1, 9, is_training=False)
        server.handle(OutputGradient(0, 1, torch.ones_like(output)))
        states.append(server.side.state())
    calm, disturbed = states
    assert all(torch.equal(calm[name], disturbed[name]) for name in calm)


def test_an_abandoned_step_of_a_new_client_leaves_no_trace(make_server):
    server = train(make_server("per-client"), clients=(0,), steps=2)
    before = {name: value.clone() for name, value in server.side.state().items()}
    send(server, 1)
    send(server, 0, is_training=False)
    server.abandon_step()
    after = server.side.state()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], before[name]) for name in before)


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_server_answers_every_client_as_before(kind, make_server):
    server, loaded = train(make_server(kind), steps=3), make_server(kind)
    loaded.side.load({k: v.clone() for k, v in server.side.state().items()})
    for client in (1, 0):
        ours = send(loaded, client, is_training=False)
        assert torch.equal(ours, send(server, client, is_training=False))


def test_loading_forgets_the_statistics_of_later_steps(make_server):
    server = train(make_server("per-client"), clients=(0,), steps=2)
    early = {name: value.clone() for name, value in server.side.state().items()}
    train(server, steps=4)
    server.side.load(early)
    assert server.side.state().keys() == early.keys()
    assert all(torch.equal(server.side.state()[name], early[name]) for name in early)


def test_frozen_statistics_are_those_of_the_first_weights_in_training_too(make_server):
    server = make_server("frozen")
    server.side.modules["backbone"][0].running_mean.fill_(4.0)
    trained = send(server, 1)
    server.abandon_step()
    assert torch.equal(trained, send(server, 1, is_training=False))
    assert float(server.side.state()[MEAN].mean()) == 4.0


def test_shared_statistics_add_nothing_to_a_state(make_server):
    state = train(make_server("shared"), steps=1).side.state()
    assert not [name for name in state if name.startswith("statistics")]


def test_batch_statistics_of_a_single_sample_are_refused(make_server):
    with pytest.raises(ProtocolError, match="at least 2 samples to predict, got 1"):
        send(make_server("batch"), 0, is_training=False, rows=1)


def test_statistics_of_clients_do_not_fit_a_server_that_shares_them(make_server):
    state = train(make_server("per-client"), steps=1).side.state()
    with pytest.raises(RunError, match="expected shared"):
        make_server("shared").side.load(state)


@pytest.mark.parametrize("name", ["statistics.x.backbone", "statistics.0.nothing"])
def test_a_damaged_state_is_refused(name, make_server):
    server = make_server("per-client")
    with pytest.raises(RunError, match="statistics"):
        server.side.load({**server.side.state(), name: torch.zeros(3)})


def test_an_unknown_kind_is_refused():
    with pytest.raises(ConfigError, match="unknown kind of statistics 'mine'"):
        Statistics(nn.BatchNorm1d(2), "mine")
