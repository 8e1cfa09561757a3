"""A client that sends codes once, and the server that keeps them, in one process."""

from functools import partial

import pytest
import torch
from torch import nn

from lightsplit.codecs import CODECS, Code
from lightsplit.data import Batches
from lightsplit.errors import ConfigError, ProtocolError
from lightsplit.protocol import CodeMessage, OutputGradient, Recall, Release
from lightsplit.protocol.phases import LOCAL, RELEASE, TRAIN
from lightsplit.runtime import (
    CachingServer,
    ClientSide,
    OnceClient,
    Pace,
    Server,
    ServerSide,
)
from lightsplit.transports import Recorder, through

ADAM = partial(torch.optim.Adam, lr=1e-2)


class Rows:
    """Twelve samples of six numbers in two classes."""

    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        self.inputs = torch.randn(12, 6, generator=generator)
        self.labels = (self.inputs[:, 0] > 0).long()

    def batch(self, rows):
        return self.inputs[rows], self.labels[rows]


class Run:
    """One client and its server."""

    def __init__(self):
        torch.manual_seed(5)
        codec = CODECS.create("lightsplit-b", shape=(6,), bits=4, hidden=8)
        self.server = CachingServer(ServerSide(nn.Linear(6, 5), codec, ADAM))
        self.side = ClientSide(
            nn.Linear(6, 6),
            nn.Linear(5, 2),
            codec,
            ADAM,
            local_tail=nn.Linear(4, 2),
        )
        self.recorder = Recorder()
        self.client = OnceClient(self.side, through(self.recorder, self.server.handle))
        self.batches = Batches(Rows(), range(12), 4, seed=0, client=0)

    def turn(self, phase, steps, *, done=0):
        self.client.pace = Pace(self.client.steps, steps, 0, steps, phase, done)
        return self.client.run_turn(self.batches, steps)

    def weights(self, *names):
        modules = [self.side.modules[name] for name in names]
        return [t.clone() for one in modules for t in one.state_dict().values()]

    @property
    def sent(self):
        return [type(request) for request, _ in self.recorder.exchanges]


@pytest.fixture
def run():
    return Run()


def same(before, after):
    return all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_local_steps_train_head_and_encoder_and_send_nothing(run):
    head = run.weights("head", "encoder", "local_tail")
    tail = run.weights("tail")
    report = run.turn(LOCAL, 3)
    assert report.samples == 12
    assert not same(head, run.weights("head", "encoder", "local_tail"))
    assert same(tail, run.weights("tail"))
    assert run.sent == []


def test_after_the_release_only_the_tail_and_the_server_train(run):
    run.turn(LOCAL, 3)
    head = run.weights("head", "encoder", "local_tail")
    tail = run.weights("tail")
    run.turn(RELEASE, 3)
    server = [p.clone() for p in run.server.side.modules.parameters()]
    run.turn(TRAIN, 3)
    assert run.sent == [Release] * 3 + [Recall, OutputGradient] * 3
    assert same(head, run.weights("head", "encoder", "local_tail"))
    assert not same(tail, run.weights("tail"))
    assert not same(server, run.server.side.modules.parameters())
    assert run.client.steps == 9


def test_a_release_goes_on_where_the_server_stands(run):
    run.turn(RELEASE, 2)
    run.client.steps = 0  # as after a restart
    run.turn(RELEASE, 3, done=2)
    firsts = [(request.first, request.step) for request, _ in run.recorder.exchanges]
    assert firsts == [(0, 0), (4, 1), (8, 2)]
    assert run.client.steps == 3


def test_a_step_on_kept_codes_is_a_step_on_the_codes_themselves(run):
    run.turn(RELEASE, 3)
    numbers = run.batches.numbers(3)
    inputs, labels = run.batches.numbered(numbers)
    with torch.no_grad():
        code = run.side.encode(inputs)
    run.server.side.modules.train()
    output = run.server.side.forward(code).values
    loss = nn.functional.cross_entropy(run.side.decode(Code(output)), labels)
    assert run.client.recall_step(numbers, labels) == pytest.approx(loss.item())


def test_test_samples_are_sent_once_and_named_after_that(run):
    inputs = torch.randn(3, 6)
    first = run.client.predict_test(inputs, 0)
    assert run.sent == [Release, Recall]
    assert torch.equal(run.client.predict_test(inputs, 0), first)
    assert run.sent == [Release, Recall, Recall]
    torch.testing.assert_close(run.client.predict(inputs), first)


def test_a_code_in_a_step_is_refused(run):
    code = Code(torch.zeros(1, dtype=torch.uint8))
    with pytest.raises(ProtocolError, match="each code is sent once in this run"):
        run.server.handle(CodeMessage(0, 0, code))


@pytest.mark.parametrize("kind", [Release, Recall])
def test_a_server_of_codes_in_every_step_refuses_the_others(kind, run):
    server = Server(run.server.side)
    given = (0, Code(torch.zeros(1))) if kind is Release else (torch.zeros(1),)
    with pytest.raises(ProtocolError, match="sends a code in every step, got a re"):
        server.handle(kind(0, 0, *given))


def test_a_reply_that_is_no_note_is_refused(run):
    run.turn(RELEASE, 3)
    run.client.send = lambda request: run.server.handle(
        Recall(request.client, request.step, torch.tensor([0, 1]))
    )
    with pytest.raises(ProtocolError, match="expected a note, got OutputMessage"):
        run.turn(RELEASE, 1)


def test_an_output_of_another_number_of_samples_is_refused(run):
    run.turn(RELEASE, 3)
    run.client.send = lambda request: run.server.handle(
        Recall(request.client, request.step, torch.tensor([0, 1]))
    )
    with pytest.raises(ProtocolError, match="an output of 4 rows, got 2"):
        run.turn(TRAIN, 1)


def test_batches_without_numbers_are_refused(run):
    run.batches = object()
    with pytest.raises(ConfigError, match="expected batches with numbers, got object"):
        run.turn(RELEASE, 1)
