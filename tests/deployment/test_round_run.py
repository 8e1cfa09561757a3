"""Rounds at the server, with owners that stall, lie, repeat themselves or come late."""

import time
from functools import partial

import pytest
import torch
from torch import nn

from lightsplit.codecs import CODECS, Code
from lightsplit.deployment.coordinator import Coordinator
from lightsplit.errors import ExchangeError
from lightsplit.formats import WireFormats
from lightsplit.protocol import CodeMessage, OutputGradient, OutputMessage, Share
from lightsplit.protocol.control import Finished, Grant, Hello, Ready, TurnDone
from lightsplit.runs.plan import RunPlan
from lightsplit.runs.rounds import read_participation
from lightsplit.runtime import JoiningServer, ServerSide

SGD = partial(torch.optim.SGD, lr=0.1)
PATIENT = {"round_timeout_seconds": 600, "step_timeout_seconds": 10_000}


def make_server():
    torch.manual_seed(0)
    codec = CODECS.create("raw", shape=(4,))
    return JoiningServer(ServerSide(nn.Linear(4, 4), codec, SGD))


@pytest.fixture
def rounds(net, tmp_path):
    """Return what starts a server of parallel rounds, and its owners' lines."""
    lines = []

    def start(heads="private", epochs=1, server=None, **plan):
        terms = net.make_contract(rounds="parallel", heads=heads)
        coordinator = Coordinator(
            server or make_server(),
            terms,
            RunPlan(epochs=epochs, **plan),
            run="run",
            folder=tmp_path / "checkpoint",
            names=net.NAMES,
        )
        coordinator.file = tmp_path / "participation.jsonl"
        return coordinator

    def enter(coordinator, name):
        line = net.LiveLine(coordinator, name)
        lines.append(line)
        line.call(Hello(name, coordinator.contract.to_json(), "train"))
        line.index = net.NAMES.index(name)
        line.send(Ready(2))
        return line

    start.enter = enter
    yield start
    for line in lines:
        line.close()


def code(line, step=0, rows=2, value=1.0):
    return CodeMessage(line.index, step, Code(torch.full((rows, 4), value)))


def gradient(line, step=0, rows=2, value=0.1):
    return OutputGradient(line.index, step, torch.full((rows, 4), value))


def tick(coordinator, until, seconds=120):
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline
        coordinator.wait(0.01)


def step(lines, number=0, **more):
    for line in lines:
        line.send(code(line, number, **more))
    outputs = [line.receive() for line in lines]
    for line in lines:
        line.send(gradient(line, number, **more))
    return outputs, [line.receive() for line in lines]


def test_the_first_waits_until_all_have_come(rounds, net):
    run = rounds()
    first, second = (rounds.enter(run, name) for name in net.NAMES[:2])
    assert first.is_waiting
    assert second.is_waiting
    third = rounds.enter(run, "carol")
    lines = [first, second, third]
    grants = [line.receive() for line in lines]
    assert [(one.turn, one.steps) for one in grants] == [(0, 1)] * 3
    first.send(code(first))
    second.send(code(second))
    assert first.is_waiting
    third.send(code(third))
    assert all(isinstance(line.receive(), OutputMessage) for line in lines)


def test_a_round_goes_on_without_an_owner_that_stalls(rounds, net, pass_time):
    run = rounds(min_clients=2, **PATIENT)
    lines = [rounds.enter(run, name) for name in net.NAMES]
    for line in lines:
        line.receive()
    active, stalls = lines[:2], lines[2]
    for line in active:
        line.send(code(line))
    assert active[0].is_waiting
    pass_time(600)
    tick(run, lambda: not active[0].is_waiting)
    for line in active:
        line.receive()
        line.send(gradient(line))
    for line in active:
        line.receive()
        line.send(TurnDone(0))
    tick(run, lambda: run.progress.turns == 3)
    assert run.progress.client_steps == [1, 1, 0]
    with pytest.raises(ExchangeError, match=r"over|too late"):
        stalls.call(code(stalls))
    again = rounds.enter(run, "carol")
    tick(run, lambda: not again.is_waiting)
    assert again.receive().first_step == 0
    assert read_participation(run.file, 3)[0].codes == (0, 1)


def test_an_answer_that_comes_twice_counts_once(rounds, net):
    run = rounds()
    lines = [rounds.enter(run, name) for name in net.NAMES]
    for line in lines:
        line.receive()
    outputs, gradients = step(lines)
    weights = {k: v.clone() for k, v in run._run._server.side.state().items()}
    again = lines[0].call(code(lines[0], value=9.0))
    assert torch.equal(again.output.values, outputs[0].output.values)
    repeated = lines[0].call(gradient(lines[0], value=9.0))
    assert torch.equal(repeated.gradient, gradients[0].gradient)
    now = run._run._server.side.state()
    assert all(torch.equal(now[name], one) for name, one in weights.items())


@pytest.mark.parametrize("rows", [2, 4])
def test_the_weight_of_an_owner_is_the_rows_that_it_sent(rows, rounds, net):
    run = rounds()
    lines = [rounds.enter(run, name) for name in net.NAMES]
    counts = [2, rows, 2]
    for line in lines:
        line.receive()
        line.send(code(line, rows=counts[line.index]))
    for line in lines:
        line.receive()
        value = 0.1 / rows if line.index == 1 else 0.0
        line.send(gradient(line, rows=counts[line.index], value=value))
    for line in lines:
        line.receive()
    server = run._run._server
    server.settle()
    before, after = (
        one.side.modules["backbone"].bias.detach() for one in (make_server(), server)
    )
    expected = 0.1 * 0.1 * rows / sum(counts)
    torch.testing.assert_close(before - after, torch.full((4,), expected))


def test_a_message_beyond_the_limit_puts_out_its_sender_alone(rounds, net, pass_time):
    run = rounds(min_clients=2, **PATIENT)
    lines = [rounds.enter(run, name) for name in net.NAMES]
    for line in lines:
        line.receive()
    with pytest.raises(ExchangeError, match="norm limit"):
        lines[2].call(code(lines[2], value=1e9))
    for line in lines[:2]:
        line.send(code(line))
    pass_time(600)
    tick(run, lambda: not lines[0].is_waiting)
    assert all(isinstance(line.receive(), OutputMessage) for line in lines[:2])


def test_a_late_owner_gets_the_side_that_another_one_sealed(rounds, net):
    run = rounds("shared", epochs=3, min_clients=2, round_timeout_seconds=0.2)
    lines = [rounds.enter(run, name) for name in net.NAMES[:2]]
    tick(run, lambda: not lines[0].is_waiting)
    late = None
    for number in range(3):
        grants = [line.receive() for line in lines]
        assert [one.turn for one in grants] == [number] * 2
        asked = [line for line, one in zip(lines, grants, strict=True) if one.hand_on]
        step(lines, number)
        if number == 0:
            late = rounds.enter(run, "carol")
            assert late.is_waiting
        nonce = torch.zeros(1, 16, dtype=torch.uint8)
        for line in lines:
            numbers = torch.full((5,), line.index)
            line.send(Share(line.index, number, numbers, nonce))
        totals = [line.receive() for line in lines]
        assert all(one.numbers.tolist() == [1] * 5 for one in totals)
        assert [one.samples for one in totals] == [2 + 2] * 2  # as the server counts
        for line in lines:
            side = f"side {number}".encode() if line in asked else b""
            line.send(TurnDone(number, side))
        if asked and late is not None:
            break
    got = late.receive()
    assert (got.turn, got.first_step) == (number + 1, 0)
    assert got.side == f"side {number}".encode()
    assert [line.receive().side for line in lines] == [b"", b""]


def test_of_many_owners_some_are_drawn_for_each_round(rounds, net):
    run = rounds(epochs=3, owners_per_round=2)
    lines = [rounds.enter(run, name) for name in net.NAMES]
    steps = [0, 0, 0]
    for number in range(6):
        tick(run, lambda number=number: run.round_number == number and run.at_work())
        chosen = [line for line in lines if line.index in run.at_work()]
        assert len(chosen) == 2
        for line in chosen:
            assert line.receive().turn == number
            line.send(code(line, steps[line.index]))
        for line in chosen:
            line.receive()
            line.send(gradient(line, steps[line.index]))
        for line in chosen:
            line.receive()
            line.send(TurnDone(number))
            steps[line.index] += 1
    tick(run, lambda: run.finished is not None)
    assert min(steps) > 0
    assert run.progress.client_steps == steps
    assert (run.progress.steps, run.progress.skipped) == (12, 6)


def test_a_restarted_server_stands_at_the_last_boundary(rounds, net):
    run = rounds(epochs=2, checkpoint_every=3)
    lines = [rounds.enter(run, name) for name in net.NAMES]
    for number in range(2):
        for line in lines:
            assert line.receive().turn == number
        step(lines, number)
        for line in lines:
            line.send(TurnDone(number, loss=0.5))
    for line in lines:
        assert line.receive().turn == 2
    step(lines, 2)
    for line in lines:
        line.close()
    again = rounds(epochs=2, checkpoint_every=3)
    lines = [rounds.enter(again, name) for name in net.NAMES]
    grants = [line.receive() for line in lines]
    assert [(one.turn, one.first_step) for one in grants] == [(2, 2)] * 3
    assert len(read_participation(again.file, 3)) == 2
    for number in (2, 3):
        step(lines, number)
        for line in lines:
            line.send(TurnDone(number))
        ends = [line.receive() for line in lines]
        assert all(isinstance(one, Grant if number == 2 else Finished) for one in ends)
    assert again.progress.steps == 12


class Picky(nn.Linear):
    """A backbone that fails on what a strange message holds."""

    def forward(self, inputs):
        if inputs.min() < 0:
            raise ValueError("no room below /srv/models/picky.py")
        return super().forward(inputs)


def picky():
    torch.manual_seed(0)
    codec = CODECS.create("raw", shape=(4,))
    return JoiningServer(ServerSide(Picky(4, 4), codec, SGD))


def enter_all(rounds, run, names):
    lines = [rounds.enter(run, name) for name in names]
    for line in lines:
        tick(run, lambda line=line: not line.is_waiting)
    return lines, [line.receive() for line in lines]


def told(run, line):
    tick(run, lambda: not line.is_waiting)
    return line.receive()


def test_a_round_in_which_nobody_can_be_answered_begins_again(rounds, net):
    run = rounds(min_clients=1, round_timeout_seconds=0.2)
    before = weights(run)
    (line,), _ = enter_all(rounds, run, ["alice"])
    line.send(code(line, value=9e5))
    told(run, line)
    line.send(gradient(line, value=9e5))
    with pytest.raises(ExchangeError, match="norm limit"):
        told(run, line)
    (again,), (grant,) = enter_all(rounds, run, ["alice"])
    assert (grant.turn, grant.first_step) == (0, 0)
    assert weights(run) == before
    step([again])
    again.send(TurnDone(0))
    assert told(run, again).turn == 1


def test_codes_of_a_lone_owner_that_cannot_be_computed_end_no_run(rounds, net):
    run = rounds(server=picky(), min_clients=1, round_timeout_seconds=0.2)
    (line,), _ = enter_all(rounds, run, ["alice"])
    line.send(code(line, value=-1.0))
    with pytest.raises(ExchangeError, match="cannot be computed: no room below …"):
        told(run, line)
    assert run.failure is None
    (again,), (grant,) = enter_all(rounds, run, ["alice"])
    assert grant.turn == 0
    step([again])


def test_an_evaluation_that_cannot_be_computed_is_refused_and_ends_no_run(rounds, net):
    run = rounds(server=picky(), min_clients=1, round_timeout_seconds=0.2)
    (line,), _ = enter_all(rounds, run, ["alice"])
    values = Code(torch.full((2, 4), -1.0))
    with pytest.raises(ExchangeError, match="code of step 0 cannot be computed"):
        line.call(CodeMessage(line.index, 0, values, is_training=False))
    assert run.failure is None


def test_a_round_that_loses_an_owner_it_needs_begins_again(rounds, net):
    """With shared heads an owner that is left behind could not come back by itself."""
    run = rounds("shared")
    before = weights(run)
    lines, _ = enter_all(rounds, run, net.NAMES)
    for line in lines:
        line.send(code(line, value=9e5 if line.index == 1 else 1.0))
    for line in lines:
        line.receive()
        line.send(gradient(line, value=9e5 if line.index == 1 else 0.1))
    with pytest.raises(ExchangeError, match="norm limit"):
        lines[1].receive()
    for line in (lines[0], lines[2]):
        with pytest.raises(ExchangeError, match="round 0 is over") as error:
            line.receive()
        assert error.value.code == "stale-turn"
    assert weights(run) == before
    lines, grants = enter_all(rounds, run, net.NAMES)
    assert [(one.turn, one.first_step) for one in grants] == [(0, 0)] * 3
    step(lines)


def weights(run):
    state = run._run._server.side.state()
    return {name: one.tolist() for name, one in state.items()}


def test_figures_and_a_side_count_only_of_the_owner_that_was_asked(rounds, net):
    run = rounds("shared", epochs=1, eval_every=1)
    lines, grants = enter_all(rounds, run, net.NAMES)
    assert [one.evaluate for one in grants] == [False, False, True]
    step(lines)
    nonce = torch.zeros(1, 16, dtype=torch.uint8)
    for line in lines:
        line.send(Share(line.index, 0, torch.full((5,), line.index), nonce))
    for line in lines:
        line.receive()
    figures = (0.5,) * (1 + len(run.contract.metrics))
    with pytest.raises(ExchangeError, match="no side was asked of alice"):
        lines[0].call(TurnDone(0, b"another side"))
    lines[0] = rounds.enter(run, "alice")
    lines[0].receive()
    lines[0].send(TurnDone(0, figures=(9.0,) * len(figures), samples=2**40))
    lines[1].send(TurnDone(0))
    lines[2].send(TurnDone(0, b"the side", figures=figures, samples=8))
    for line in lines:
        line.receive()
    (told,) = run.progress.history
    assert told["test_loss"] == 0.5
    assert run._run._boundary.sealed_side == b"the side"


def test_a_reply_beyond_its_format_puts_out_its_owner_alone(rounds, net):
    codec = CODECS.create("raw", shape=(4,))
    formats = WireFormats("code_gradient=fp16")
    side = ServerSide(nn.Linear(4, 4), codec, SGD)
    server = JoiningServer(side, formats=formats)
    run = rounds(server=server, min_clients=2, **PATIENT)
    lines, _ = enter_all(rounds, run, net.NAMES)
    for line in lines:
        line.send(code(line, value=0.01))
    for line in lines:
        line.receive()
        line.send(gradient(line, value=3e5 if line.index == 1 else 0.1))
    with pytest.raises(ExchangeError, match="fp16 holds numbers up to"):
        lines[1].receive()
    for line in (lines[0], lines[2]):
        assert line.receive().kind == "code_gradient"
