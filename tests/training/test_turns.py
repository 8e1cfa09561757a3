"""A step is applied once, whatever is repeated, broken off or sent out of order."""

import shutil
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from lightsplit.errors import ProtocolError
from lightsplit.protocol import CodeMessage
from lightsplit.protocol.control import TurnDone
from lightsplit.training.plan import Plan
from lightsplit.training.schedule import Schedule
from lightsplit.training.turns import OrderBook, TurnLog


@pytest.fixture
def log(net):
    server = net.CountingServer()
    log = TurnLog("output_gradient")
    return log, server, lambda message: log.answer(message, 5, server.answer)


def test_a_message_that_is_sent_again_gets_the_answer_it_got(log, net):
    log, server, answer = log
    first = [answer(net.code(0, 5)), answer(net.gradient(0, 5))]
    again = [answer(net.code(0, 5)), answer(net.gradient(0, 5))]
    assert [id(reply) for reply in first] == [id(reply) for reply in again]
    assert server.applied == [(0, 5)]
    assert (log.done, log.samples) == (1, 2)


@pytest.mark.parametrize(
    ("kind", "step", "expected"),
    [
        ("gradient", 5, "expected code of step 5, got output_gradient of step 5"),
        ("code", 6, "expected code of step 5, got code of step 6"),
        ("code", 4, "expected code of step 5, got code of step 4"),
    ],
)
def test_what_is_not_next_is_refused_and_leaves_no_trace(
    kind, step, expected, log, net
):
    log, server, answer = log
    with pytest.raises(ProtocolError, match=expected):
        answer(getattr(net, kind)(0, step))
    assert (log.done, log.is_empty, server.applied) == (0, True, [])


def test_an_open_step_that_was_forgotten_begins_anew(log, net):
    log, server, answer = log
    first = answer(net.code(0, 5))
    server.abandon_step()
    log.forget_open_step(5)
    assert log.is_empty
    assert answer(net.code(0, 5)) is not first
    answer(net.gradient(0, 5))
    log.forget_open_step(5)  # there is none
    assert server.applied == [(0, 5)]


def test_a_refused_step_is_not_remembered(log, net):
    log, server, answer = log
    server.open = (9, 9)
    with pytest.raises(ProtocolError, match="is open"):
        answer(net.code(0, 5))
    server.abandon_step()
    assert answer(net.code(0, 5)).step == 5


def orders(book):
    """Return all orders of a run as (number, client, steps, evaluate)."""
    found, turns, steps = [], 0, 0
    while (order := book.current(turns=turns, steps=steps)) is not None:
        found.append((order.number, order.client, order.steps, order.evaluate))
        book.complete()
        turns, steps = turns + bool(order.steps), steps + order.steps
    return found


def make_book(*, shared, turns=0):
    schedule = Schedule([2, 1], turn_steps=1)
    return OrderBook(schedule, turns=turns, eval_every=0, has_shared_heads=shared)


def test_with_shared_heads_the_last_client_speaks_for_all():
    assert orders(make_book(shared=True)) == [
        (0, 0, 1, False),
        (1, 1, 1, False),
        (2, 0, 1, True),
    ]


def test_with_private_heads_every_client_is_tried_at_the_end():
    expected = [(0, 0, 1, False), (1, 1, 1, False), (2, 0, 1, False)]
    expected += [(2, 0, 0, True), (2, 1, 0, True)]
    assert orders(make_book(shared=False)) == expected


def test_a_boundary_lies_before_a_turn_and_after_its_evaluations():
    book = make_book(shared=False, turns=2)
    found = []
    turns, steps = 2, 2
    while (order := book.current(turns=turns, steps=steps)) is not None:
        found.append(book.is_at_boundary)
        book.complete()
        turns, steps = turns + bool(order.steps), steps + order.steps
    assert found == [True, False, False]
    assert book.is_at_boundary


def test_the_end_of_a_turn_is_known_before_it_comes():
    book = make_book(shared=False)
    found = []
    turns = steps = 0
    while (order := book.current(turns=turns, steps=steps)) is not None:
        found.append(book.ends_turn)
        book.complete()
        turns, steps = turns + bool(order.steps), steps + order.steps
    assert found == [True, True, False, False, True]


class AnyCourse(RuleBasedStateMachine):
    """Clients repeat, break off, vanish and speak out of order; the server crashes."""

    net = None  # given by the test

    @initialize(
        batches=st.lists(st.integers(1, 4), min_size=1, max_size=3),
        turn_steps=st.integers(0, 3),
        every=st.integers(0, 3),
        topology=st.sampled_from(["u", "vanilla"]),
        heads=st.sampled_from(["shared", "private", "private"]),
    )
    def begin(self, batches, turn_steps, every, topology, heads):
        self.folder = Path(tempfile.mkdtemp())
        self.batches = batches
        self.topology = topology
        self.plan = Plan(turn_steps=turn_steps, epochs=2, checkpoint_every=every)
        self.terms = {"topology": topology, "heads": heads, "turn_steps": turn_steps}
        self.expected = [
            (turn.client, step)
            for turn, first in _firsts(Schedule(batches, turn_steps, 2))
            for step in range(first, first + turn.steps)
        ]
        self._start()

    def teardown(self):
        if not hasattr(self, "folder"):
            return
        while self.course.finished is None:
            if self.late is not None:
                self.hand_in_the_late_turn()
            self.send_next()
            self.complete()
        assert self.server.applied == self.expected
        shutil.rmtree(self.folder)

    def _start(self):
        self.server = self.net.CountingServer()
        self.course = self.net.make_course(
            self.folder,
            self.batches,
            server=self.server,
            plan=self.plan,
            **self.terms,
        )
        self.told = {}
        self.late = None  # its order, messages and replies

    @property
    def order(self):
        return self.course.current()

    @property
    def first(self):
        return self.course.progress.client_steps[self.order.client]

    @property
    def messages(self):
        """All messages of the turn, in order."""
        client, first = self.order.client, self.first
        return [
            message
            for step in range(first, first + self.order.steps)
            for message in self._step(client, step)
        ]

    def _step(self, client, step):
        if self.topology == "vanilla":
            return [self.net.code(client, step, topology="vanilla")]
        return [self.net.code(client, step), self.net.gradient(client, step)]

    def _is_on(self):
        return self.order is not None

    @precondition(_is_on)
    @rule()
    def send_next(self):
        for message in self.messages:
            key = (message.kind, message.step)
            if key not in self.told:
                self.told[key] = self.course.answer(self.order, message)
                break
        self._check()

    @precondition(_is_on)
    @rule(number=st.integers(0, 100))
    def send_again(self, number):
        told = [m for m in self.messages if (m.kind, m.step) in self.told]
        if told:
            message = told[number % len(told)]
            before = self.told[message.kind, message.step]
            assert self.course.answer(self.order, message) is before
        self._check()

    @precondition(_is_on)
    @rule(number=st.integers(1, 9))
    def send_too_early(self, number):
        untold = [m for m in self.messages if (m.kind, m.step) not in self.told]
        if number < len(untold):
            with pytest.raises(ProtocolError):
                self.course.answer(self.order, untold[number])
        self._check()

    @precondition(_is_on)
    @rule()
    def ask_for_a_prediction(self):
        order = self.order
        if self.server.open is None:
            message = self.net.code(order.client, 0, is_training=False)
            assert isinstance(message, CodeMessage)
            self.course.answer(order, message)
        self._check()

    @precondition(_is_on)
    @rule()
    def vanish(self):
        self.course.abandon(self.order)
        if self.topology == "u" and len(self.told) % 2:
            self.told.popitem()
        assert self.course.grant(self.order).done == len(self._done())
        self._check()

    @precondition(_is_on)
    @rule()
    def go_on(self):
        """Leave a turn that is applied to be handed in while the next one runs."""
        order, messages, told = self.order, self.messages, self.told
        if self.course.go_on(order):
            assert self.late is None
            assert len(self._done()) == order.steps
            assert not self.course.is_at_boundary
            assert self.order is not None
            self.late, self.told = (order, messages, told), {}
        else:
            assert self.order is order
        self._check()

    def _has_late(self):
        return self.late is not None

    @precondition(_has_late)
    @rule(number=st.integers(0, 100))
    def repeat_the_late_turn(self, number):
        order, messages, told = self.late
        self.course.abandon(order)
        grant = self.course.grant(order)
        assert (grant.turn, grant.done) == (order.number, order.steps)
        assert grant.first_step == messages[0].step
        message = messages[number % len(messages)]
        before = told[message.kind, message.step]
        assert self.course.answer(order, message) is before
        self._check()

    @precondition(_has_late)
    @rule()
    def hand_in_the_late_turn(self):
        order, _, _ = self.late
        member = self.course.members[order.client]
        self.course.complete(order, member, TurnDone(order.number, b"", 1.0))
        self.late = None
        assert self.course.oldest is self.order
        self._check()

    @precondition(lambda self: self._is_on() and not self._has_late())
    @rule()
    def complete(self):
        order = self.order
        member = self.course.members[order.client]
        done = TurnDone(order.number, b"sealed", 1.0, 0.5, 1.0)
        if len(self._done()) == order.steps:
            self.course.complete(order, member, done)
            self.told = {}
        else:
            with pytest.raises(ProtocolError, match="are done"):
                self.course.complete(order, member, done)
        self._check()

    @precondition(_is_on)
    @rule()
    def crash(self):
        self._start()
        assert self.course.is_at_boundary
        self._check()

    def _done(self):
        last = "code" if self.topology == "vanilla" else "output_gradient"
        return [step for kind, step in self.told if kind == last]

    def _check(self):
        applied = self.server.applied
        assert applied == self.expected[: len(applied)]


def _firsts(schedule):
    """Yield every turn with the client's own number of its first step."""
    done = [0] * len(schedule.batches)
    for turn in schedule.turns():
        yield turn, done[turn.client]
        done[turn.client] += turn.steps


@pytest.fixture
def machine(net):
    machine = type("Course", (AnyCourse,), {"net": net})
    machine.TestCase.settings = settings(
        max_examples=25,
        stateful_step_count=40,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    return machine


@pytest.mark.slow
def test_any_course_of_events_applies_every_step_once(machine):
    machine.TestCase("runTest").runTest()


def test_a_log_counts_the_samples_of_whole_steps(net):
    log = TurnLog("code")
    server = net.CountingServer()
    message = CodeMessage(0, 0, net.code(0, 0).code, torch.zeros(2, dtype=torch.int64))
    log.answer(message, 0, server.answer)
    log.answer(message, 0, server.answer)
    assert (log.done, log.samples) == (1, 2)
    log.clear()
    assert (log.done, log.samples, log.is_empty) == (0, 0, True)
