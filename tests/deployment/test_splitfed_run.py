"""SplitFed at the server, with owners that leave in the middle or come out of turn."""

import io
import re
import time
from functools import partial

import pytest
import torch
from rich.console import Console
from torch import nn

from lightsplit.cli import serve
from lightsplit.codecs import CODECS, Code
from lightsplit.deployment.coordinator import Coordinator
from lightsplit.deployment.status import Board
from lightsplit.deployment.status.prometheus import RunCollector
from lightsplit.errors import ExchangeError
from lightsplit.protocol import CodeMessage, OutputGradient, Share
from lightsplit.protocol.control import Hello, Ready, TurnDone
from lightsplit.runs.plan import RunPlan
from lightsplit.runs.rounds import drawn_order, read_participation
from lightsplit.runtime import Server, ServerSide

ADAM = partial(torch.optim.Adam, lr=0.1)
STEPS, ROWS = 2, 2
ORDER = drawn_order(3, seed=0, number=0)
PATIENT = {"round_timeout_seconds": 600, "step_timeout_seconds": 10_000}
VERSIONS = ["splitfed-v1", "splitfed-v2"]


def make_server():
    torch.manual_seed(0)
    codec = CODECS.create("raw", shape=(4,))
    return Server(ServerSide(nn.Linear(4, 4), codec, ADAM))


def weights(server):
    return {name: one.clone() for name, one in server.side.state().items()}


@pytest.fixture
def splitfed(net, tmp_path):
    """Return what starts a server of SplitFed and lets its three owners enter."""
    lines = []

    def start(rounds, **plan):
        coordinator = Coordinator(
            make_server(),
            net.make_contract(rounds=rounds, turn_steps=STEPS),
            RunPlan(turn_steps=STEPS, **plan),
            run="run",
            folder=tmp_path / "checkpoint",
            names=net.NAMES,
        )
        coordinator.file = tmp_path / "participation.jsonl"
        for index, name in enumerate(net.NAMES):
            line = net.LiveLine(coordinator, name)
            line.call(Hello(name, coordinator.contract.to_json(), "train"))
            line.index = index
            line.send(Ready(2))
            lines.append(line)
        grants = [line.receive() for line in lines]
        assert [(one.steps, one.first_step) for one in grants] == [(STEPS, 0)] * 3
        return coordinator, lines

    yield start
    for line in lines:
        line.close()


def code(line, step):
    return CodeMessage(line.index, step, Code(torch.full((ROWS, 4), 1.0 + line.index)))


def gradient(line, step):
    return OutputGradient(line.index, step, torch.full((ROWS, 4), 0.1))


def steps(line, count=STEPS):
    for step in range(count):
        line.call(code(line, step))
        line.call(gradient(line, step))


def share(line):
    nonce = torch.zeros(1, 16, dtype=torch.uint8)
    return Share(line.index, STEPS - 1, torch.ones(5, dtype=torch.int64), nonce)


def tick(coordinator, until, seconds=120):
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline
        coordinator.wait(0.01)


def finish(run, lines):
    """Hand in the shares and the round of those who are still in it."""
    for line in lines:
        line.send(share(line))
    tick(run, lambda: not any(line.is_waiting for line in lines))
    for line in lines:
        total = line.receive()
        assert total.numbers.tolist() == [len(lines)] * 5
        assert total.samples == len(lines) * STEPS * ROWS
        line.send(TurnDone(0))
    tick(run, lambda: run.progress.turns == 3)


def test_owners_of_v2_wait_for_their_place_in_the_order(splitfed):
    run, lines = splitfed("splitfed-v2")
    first, second, _ = (lines[index] for index in ORDER)
    second.send(code(second, 0))
    assert second.is_waiting
    assert run.at_work() == {first.index}
    steps(first)
    first.send(share(first))
    assert second.receive().client == second.index
    assert run.at_work() == {second.index}


def test_owners_of_v1_change_copies_and_not_the_backbone(splitfed):
    run, lines = splitfed("splitfed-v1")
    before = weights(run._run._server)
    for line in lines[::-1]:
        steps(line)
    now = weights(run._run._server)
    assert all(torch.equal(now[name], one) for name, one in before.items())
    finish(run, lines)
    after = run._run._server.side.modules["backbone"].weight
    assert not torch.allclose(after, before["backbone.weight"], atol=1e-3)


def check_who_waited(run, awaited, folder):
    """The table, the live page and its metrics show how long each owner has waited."""
    waited = {one.name: one.waited_seconds for one in run.members}
    assert waited.pop(awaited) == 0
    assert min(waited.values()) > 0
    waited[awaited] = 0.0
    screen = Console(file=io.StringIO(), width=200)
    screen.print(serve._table(run, 1.0))
    header, *rows = (
        re.split(r"\s*[│┃|]\s*", line.strip("│┃| "))
        for line in screen.file.getvalue().splitlines()
        if re.search("client|alice|bob|carol", line)
    )
    shown = {row[0]: row[header.index("waited")] for row in rows}
    assert shown == {name: f"{seconds:.1f} s" for name, seconds in waited.items()}
    board = Board(folder)
    board.update(run)
    clients = board.picture["clients"]
    assert {one["name"]: one["waited_seconds"] for one in clients} == waited
    metrics = RunCollector(lambda: board.picture).text().decode()
    for name, seconds in waited.items():
        metric = f'lightsplit_client_waited_seconds_total{{client="{name}"}} {seconds}'
        assert metric in metrics


@pytest.mark.parametrize("rounds", VERSIONS)
def test_an_owner_that_leaves_in_the_middle_leaves_no_trace(
    rounds, splitfed, net, pass_time, tmp_path
):
    run, lines = splitfed(rounds, min_clients=2, **PATIENT)
    leaver, *others = (lines[index] for index in ORDER)
    steps(leaver, 1)
    for line in others:
        line.send(code(line, 0))
    pass_time(600)
    tick(run, lambda: not others[0].is_waiting)
    for line in others:
        line.receive()
        line.call(gradient(line, 0))
        line.call(code(line, 1))
        line.call(gradient(line, 1))
        line.send(share(line))
    tick(run, lambda: not any(line.is_waiting for line in others))
    for line in others:
        line.receive()
        line.send(TurnDone(0))
    tick(run, lambda: run.progress.turns == 3)
    (told,) = read_participation(run.file, 3)
    assert told.codes == told.done == tuple(sorted(ORDER[1:]))
    assert run.progress.skipped == STEPS
    check_who_waited(run, net.NAMES[leaver.index], tmp_path)
    found = run._run._server.side.modules["backbone"].weight
    torch.testing.assert_close(found, of_those_who_stayed(rounds))


def of_those_who_stayed(rounds):
    """Return the backbone of the two last owners of the order, had they been alone."""
    alone, copies = make_server(), []
    for index in ORDER[1:]:
        server = alone.twin() if rounds == "splitfed-v1" else alone
        for step in range(STEPS):
            value = Code(torch.full((2, 4), 1.0 + index))
            server.handle(CodeMessage(index, step, value))
            server.handle(OutputGradient(index, step, torch.full((2, 4), 0.1)))
        copies.append(server.side.modules["backbone"].weight.detach())
    return copies[-1] if rounds == "splitfed-v2" else sum(copies) / 2


def test_a_share_before_the_last_step_is_refused(splitfed):
    _, lines = splitfed("splitfed-v1")
    steps(lines[0], 1)
    with pytest.raises(ExchangeError, match="2 steps of this owner, 1 are done"):
        lines[0].call(share(lines[0]))


def test_a_step_that_is_sent_again_counts_once(splitfed):
    _, lines = splitfed("splitfed-v1")
    line = lines[0]
    first = line.call(code(line, 0)), line.call(gradient(line, 0))
    again = line.call(code(line, 0)), line.call(gradient(line, 0))
    assert torch.equal(first[0].output.values, again[0].output.values)
    assert torch.equal(first[1].gradient, again[1].gradient)
    line.call(code(line, 1))
    with pytest.raises(ExchangeError, match="from 0 to 1"):
        line.call(code(line, 2))


@pytest.mark.parametrize("rounds", VERSIONS)
def test_an_owner_gains_no_time_by_repeating_itself(rounds, splitfed, pass_time):
    run, lines = splitfed(rounds, min_clients=2, **PATIENT)
    repeats, *others = (lines[index] for index in ORDER)
    for _ in range(60):
        repeats.call(code(repeats, 0))
    if rounds == "splitfed-v1":
        for line in others:
            steps(line)
            line.send(share(line))
    else:
        others[0].send(code(others[0], 0))

    def has_gone_on():
        repeats.send(code(repeats, 0))
        return not others[0].is_waiting

    for _ in range(3):  # it is never silent for as long as an owner may be
        pass_time(250)
        repeats.send(code(repeats, 0))
    tick(run, has_gone_on)
