"""Parallel rounds that an owner spoils with messages that the server refuses."""

import time
from functools import partial

import pytest
import torch
from torch import nn

from lightsplit.codecs import CODECS, Code
from lightsplit.deployment.coordinator import Coordinator
from lightsplit.errors import ExchangeError
from lightsplit.protocol import CodeMessage, OutputGradient
from lightsplit.protocol.control import Hello, Ready, TurnDone
from lightsplit.runs.plan import RunPlan
from lightsplit.runtime import JoiningServer, ServerSide


class Owners:
    """A server of parallel rounds, and the lines of its owners."""

    def __init__(self, net, folder, **plan):
        codec = CODECS.create("raw", shape=(4,))
        sgd = partial(torch.optim.SGD, lr=0.1)
        self.net = net
        self.run = Coordinator(
            JoiningServer(ServerSide(nn.Linear(4, 4), codec, sgd)),
            net.make_contract(rounds="parallel", heads="private"),
            RunPlan(epochs=1, **plan),
            run="run",
            folder=folder / "checkpoint",
            names=net.NAMES,
        )
        self.opened = []
        self.lines = [self.enter(index) for index in range(len(net.NAMES))]

    def enter(self, index):
        name = self.net.NAMES[index]
        line = self.net.LiveLine(self.run, name)
        line.call(Hello(name, self.run.contract.to_json(), "train"))
        line.send(Ready(2))
        line.index = index
        self.opened.append(line)
        return line

    def enter_again(self, indices):
        for index in indices:
            self.lines[index] = self.enter(index)

    def at_work(self):
        """Return the lines of those who are in the round that is under way."""
        self.wait_for(self.run.at_work)
        return [self.lines[index] for index in sorted(self.run.at_work())]

    def wait_for(self, condition, seconds=30):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline
            self.run.wait(0.01)

    def spoil(self, lines, spoiler):
        """Send a code and a gradient of each; those of one are beyond the limit."""
        for kind, usual in ((CodeMessage, 1.0), (OutputGradient, 0.1)):
            for line in lines:
                line.receive()
                size = 9e5 if line.index == spoiler else usual
                values = torch.full((2, 4), size)
                body = Code(values) if kind is CodeMessage else values
                line.send(kind(line.index, 0, body))
        for line in lines:
            with pytest.raises(ExchangeError, match=r"norm limit|round 0 is over"):
                line.receive()


@pytest.fixture
def make_owners(net, tmp_path):
    """Return what starts a server whose owners have all come."""
    made = []

    def make(**plan):
        made.append(Owners(net, tmp_path, **plan))
        return made[-1]

    yield make
    for owners in made:
        for line in owners.opened:
            line.close()


def test_a_round_begins_again_without_the_owner_that_spoilt_it(make_owners):
    owners = make_owners(owners_per_round=2)
    drawn = owners.at_work()
    spoiler = drawn[0].index
    owners.spoil(drawn, spoiler)
    owners.enter_again([line.index for line in drawn])
    others = owners.at_work()
    assert {line.index for line in others} == {0, 1, 2} - {spoiler}
    for kind in (CodeMessage, OutputGradient):
        for line in others:
            line.receive()
            values = torch.ones(2, 4) / 9
            body = Code(values) if kind is CodeMessage else values
            line.send(kind(line.index, 0, body))
    for line in others:
        line.receive()
        line.send(TurnDone(0))
    owners.wait_for(lambda: owners.run.round_number == 1)


@pytest.mark.slow
def test_the_time_of_a_round_goes_on_when_it_begins_again(make_owners):
    owners = make_owners(turn_timeout_seconds=2.0)
    owners.spoil(owners.at_work(), spoiler=1)
    owners.enter_again(range(3))
    owners.wait_for(lambda: owners.run.failure is not None)  # a stage may take 60 s
    assert "was not over within 2 seconds: refused messages of bob made it begin " in (
        str(owners.run.failure)
    )
