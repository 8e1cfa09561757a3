"""A step is applied once, whatever is repeated, broken off or sent out of order."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from lightsplit.errors import ProtocolError
from lightsplit.protocol import CodeMessage
from lightsplit.protocol.control import TurnDone
from lightsplit.runs.plan import RunPlan
from lightsplit.runs.schedule import Schedule


class AnyRun(RuleBasedStateMachine):
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
        self.plan = RunPlan(turn_steps=turn_steps, epochs=2, checkpoint_every=every)
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
        while self.served.finished is None:
            if self.late is not None:
                self.hand_in_the_late_turn()
            self.send_next()
            self.complete()
        assert self.server.applied == self.expected
        shutil.rmtree(self.folder)

    def _start(self):
        self.server = self.net.CountingServer()
        self.served = self.net.make_run(
            self.folder,
            self.batches,
            server=self.server,
            plan=self.plan,
            **self.terms,
        )
        self.told = {}
        self.late = None  # its assignment, messages and replies

    @property
    def current(self):
        return self.served.turns.current

    @property
    def first(self):
        return self.served.progress.client_steps[self.current.client]

    @property
    def messages(self):
        """All messages of the turn, in order."""
        client, first = self.current.client, self.first
        return [
            message
            for step in range(first, first + self.current.steps)
            for message in self._step(client, step)
        ]

    def _step(self, client, step):
        if self.topology == "vanilla":
            return [self.net.code(client, step, topology="vanilla")]
        return [self.net.code(client, step), self.net.gradient(client, step)]

    def _is_on(self):
        return self.current is not None

    @precondition(_is_on)
    @rule()
    def send_next(self):
        for message in self.messages:
            key = (message.kind, message.step)
            if key not in self.told:
                self.told[key] = self.served.answer(self.current, message)
                break
        self._check()

    @precondition(_is_on)
    @rule(number=st.integers(0, 100))
    def send_again(self, number):
        told = [m for m in self.messages if (m.kind, m.step) in self.told]
        if told:
            message = told[number % len(told)]
            before = self.told[message.kind, message.step]
            assert self.served.answer(self.current, message) is before
        self._check()

    @precondition(_is_on)
    @rule(number=st.integers(1, 9))
    def send_too_early(self, number):
        untold = [m for m in self.messages if (m.kind, m.step) not in self.told]
        if number < len(untold):
            with pytest.raises(ProtocolError):
                self.served.answer(self.current, untold[number])
        self._check()

    @precondition(_is_on)
    @rule()
    def ask_for_a_prediction(self):
        assignment = self.current
        if self.server.open is None:
            message = self.net.code(assignment.client, 0, is_training=False)
            assert isinstance(message, CodeMessage)
            self.served.answer(assignment, message)
        self._check()

    @precondition(_is_on)
    @rule()
    def vanish(self):
        self.served.abandon(self.current)
        if self.topology == "u" and len(self.told) % 2:
            self.told.popitem()
        assert self.served.grant(self.current).done == len(self._done())
        self._check()

    @precondition(_is_on)
    @rule()
    def begin_the_next_turn_early(self):
        """Leave a turn that is applied to be handed in while the next one runs."""
        assignment, messages, told = self.current, self.messages, self.told
        if self.served.start_next_early(assignment):
            assert self.late is None
            assert len(self._done()) == assignment.steps
            assert not self.served.turns.is_at_boundary
            assert self.current is not None
            self.late, self.told = (assignment, messages, told), {}
        else:
            assert self.current is assignment
        self._check()

    def _has_late(self):
        return self.late is not None

    @precondition(_has_late)
    @rule(number=st.integers(0, 100))
    def repeat_the_late_turn(self, number):
        assignment, messages, told = self.late
        self.served.abandon(assignment)
        grant = self.served.grant(assignment)
        assert (grant.turn, grant.done) == (assignment.number, assignment.steps)
        assert grant.first_step == messages[0].step
        message = messages[number % len(messages)]
        before = told[message.kind, message.step]
        assert self.served.answer(assignment, message) is before
        self._check()

    @precondition(_has_late)
    @rule()
    def hand_in_the_late_turn(self):
        assignment, _, _ = self.late
        member = self.served.members[assignment.client]
        self.served.complete(assignment, member, TurnDone(assignment.number, b"", 1.0))
        self.late = None
        assert self.served.turns.oldest is self.current
        self._check()

    @precondition(lambda self: self._is_on() and not self._has_late())
    @rule()
    def complete(self):
        assignment = self.current
        member = self.served.members[assignment.client]
        side = b"sealed" if self.served.contract.side_travels else b""
        done = TurnDone(assignment.number, side, 1.0, (1.0, 0.5))
        if len(self._done()) == assignment.steps:
            self.served.complete(assignment, member, done)
            self.told = {}
        else:
            with pytest.raises(ProtocolError, match="are done"):
                self.served.complete(assignment, member, done)
        self._check()

    @precondition(_is_on)
    @rule()
    def crash(self):
        self._start()
        assert self.served.turns.is_at_boundary
        self._check()

    @precondition(lambda self: not self._is_on())
    @rule()
    def nothing_more_happens_after_the_end(self):
        assert self.served.finished is not None
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
    machine = type("Run", (AnyRun,), {"net": net})
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
