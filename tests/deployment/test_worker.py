"""A worker over breaking lines gives the same results as one process."""

import copy
import threading
from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lightsplit.codecs import Code
from lightsplit.deployment import pauses, worker
from lightsplit.deployment.coordinator import Coordinator
from lightsplit.deployment.hand_offs import HandOffs
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.deployment.worker import Worker
from lightsplit.errors import (
    ConfigError,
    ProtocolError,
    RunError,
    SealError,
    TransportError,
)
from lightsplit.protocol import CodeGradient, CodeMessage, OutputMessage, Share
from lightsplit.protocol.control import Finished, Grant, Heard, Ready, TurnDone, Welcome
from lightsplit.runs.evaluation import Report
from lightsplit.runs.plan import RunPlan
from lightsplit.runs.schedule import Schedule
from lightsplit.runtime import masked_sum
from lightsplit.transports.sealing import SealingKey

KEY = SealingKey.generate()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(pauses, "FIRST_SECONDS", 0.001)
    monkeypatch.setattr(pauses, "LONGEST_SECONDS", 0.002)


def in_one_process(net, turn_steps, **terms):
    """Return the states that the same run leaves in one process."""
    ends = net.Ends(**terms)
    private = terms.get("heads") == "private"
    sides = [copy.deepcopy(ends.side) if private else ends.side for _ in net.NAMES]
    clients = [ends.client_with(side, index) for index, side in enumerate(sides)]
    schedule = Schedule([len(b) for b in ends.batches], turn_steps, epochs=2)
    for turn in schedule.turns():
        clients[turn.client].run_turn(ends.batches[turn.client], turn.steps)
    return ends.server.side.state(), [side.state() for side in sides]


class Breaks:
    """Breaks chosen calls of any line; thread-safe."""

    def __init__(self, faults):
        self._faults = dict(faults)
        self._count = -1
        self._lock = threading.Lock()

    def __call__(self):
        with self._lock:
            self._count += 1
            return self._faults.get(self._count)


def over_lines(net, folder, turn_steps, breaks, **terms):
    """Run three workers on lines that break; return the same states."""
    ends = net.Ends(turn_steps=turn_steps, **terms)
    plan = RunPlan(turn_steps=turn_steps, epochs=2, step_timeout_seconds=30)
    coordinator = Coordinator(
        ends.server, ends.contract, plan, run="r", folder=folder, names=net.NAMES
    )
    sides = [copy.deepcopy(ends.side) for _ in net.NAMES]
    errors = []

    def work(index, name):
        one = Worker(
            ends.client_with(sides[index], 0),
            ends.contract,
            name=name,
            connect=lambda: net.DirectLine(coordinator, breaks=breaks),
            batches=ends.batches.__getitem__,
            options=JoinOptions(
                key=KEY, state_folder=folder / name, give_up_seconds=20
            ),
        )
        try:
            one.run()
        except Exception as error:  # noqa: BLE001  shown below
            errors.append(error)
            coordinator.stop()

    threads = [
        threading.Thread(target=work, args=pair) for pair in enumerate(net.NAMES)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert not errors
    return ends.server.side.state(), [side.state() for side in sides]


def assert_same(got, expected):
    for mine, theirs in zip(
        [got[0], *got[1]], [expected[0], *expected[1]], strict=True
    ):
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)


@pytest.mark.timeout(900)  # twelve runs
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(
    faults=st.dictionaries(
        st.integers(0, 90),
        st.sampled_from(["before", "after", "unnoticed"]),
        max_size=20,
    ),
    turn_steps=st.sampled_from([1, 2, 0]),
    heads=st.sampled_from(["shared", "private"]),
    topology=st.sampled_from(["u", "vanilla"]),
)
@pytest.mark.slow
def test_lines_that_break_anywhere_change_nothing(
    net, tmp_path_factory, faults, turn_steps, heads, topology
):
    terms = {"heads": heads, "topology": topology}
    folder = tmp_path_factory.mktemp("run")
    got = over_lines(net, folder, turn_steps, Breaks(faults), **terms)
    assert_same(got, in_one_process(net, turn_steps, **terms))


# One worker and a server that says what the test wants.


@pytest.fixture
def work(net, tmp_path):
    """Return what runs a worker over scripts, one after the other."""

    def work(*scripts, heads="private", rounds="turns", **options):
        ends = net.Ends(heads=heads, rounds=rounds)
        client = ends.client_with(ends.side, 0)
        left = list(scripts)
        known = {"state_folder": tmp_path, "key": KEY, "give_up_seconds": 0}
        one = Worker(
            client,
            ends.contract,
            name="alice",
            connect=lambda: left.pop(0),
            batches=ends.batches.__getitem__,
            options=JoinOptions(**{**known, **options}),
        )
        return SimpleNamespace(client=client, finished=one.run(), ends=ends)

    return work


def test_the_end_is_taken_note_of(net, work):
    line = net.Script(Welcome(1, "r"), Finished("schedule", 3))
    assert work(line).finished.reason == "schedule"
    assert line.last == Heard()
    assert line.is_closed
    assert line.heard[1] == Ready(2)  # the batches of client 1


def test_an_index_that_nobody_has_is_refused(net, work):
    with pytest.raises(ProtocolError, match="below 3, got 3"):
        work(net.Script(Welcome(3, "r")))


def test_before_the_first_order_a_server_may_come_back_as_another_run(net, work):
    """It was killed before it began: nothing was trained under the first name."""
    first = net.Script(Welcome(0, "before"), TransportError("gone"))
    second = net.Script(Welcome(1, "after"), Finished())
    ended = work(first, second, give_up_seconds=5)
    assert ended.client.index == 1
    assert second.heard[1] == Ready(2)  # the batches of client 1, not of client 0


@pytest.mark.parametrize("welcome", [Welcome(0, "other"), Welcome(1, "r")])
def test_after_the_first_order_neither_run_nor_place_may_change(net, welcome, work):
    first = net.Script(Welcome(0, "r"), Grant(0, 0, 0), TransportError("gone"))
    with pytest.raises(ProtocolError, match="this client is number 0 in run r"):
        work(first, net.Script(welcome), give_up_seconds=5)


def test_the_last_side_must_be_there_and_open(net, work):
    with pytest.raises(SealError):
        work(net.Script(Welcome(0, "r"), Finished("schedule", 4, b"")), heads="shared")


def test_shared_heads_need_a_key_before_anything_else(work):
    with pytest.raises(ConfigError, match="a key is needed"):
        work(heads="shared", key=None)


def test_a_client_cannot_resume_without_its_kept_side(net, work):
    line = net.Script(Welcome(0, "r"), Grant(4, 1, 7))
    with pytest.raises(RunError, match=r"step 7, but .* does not hold"):
        work(line)
    with pytest.raises(RunError, match="was not kept"):
        work(net.Script(Welcome(0, "r"), Grant(4, 1, 7)), state_folder=None)


@pytest.mark.parametrize(
    ("options", "figures"),
    [
        ({"test": []}, (None, (1.5, 0.5), 4)),
        ({}, (None, ())),
        ({"test": [], "reports": False}, (None, ())),
    ],
    ids=["told", "no test set", "kept to itself"],
)
def test_figures_are_told_only_if_the_client_reports_them(
    options, figures, net, work, monkeypatch
):
    measured = Report({"loss": 1.5, "accuracy": 0.5}, samples=4)
    monkeypatch.setattr(worker, "measure", lambda *_asked: measured)
    line = net.Script(Welcome(0, "r"), Grant(0, 0, 0, evaluate=True), Finished())
    work(line, **options)
    assert line.heard[2] == TurnDone(0, b"", *figures)


def test_every_instruction_is_shown(net, work):
    seen = []
    line = net.Script(Welcome(0, "r"), Grant(0, 0, 0), Finished())
    work(line, watch=seen.append)
    assert seen == [Grant(0, 0, 0), Finished()]


@pytest.mark.parametrize("is_there_again", [False, True])
def test_a_last_step_that_came_too_late_for_its_round_is_taken_back(
    is_there_again, net, work
):
    """The server does not count it, and so the owner's head must be without it."""
    first = copy.deepcopy(net.Ends(heads="private").side.state())
    line = net.Script(
        Welcome(0, "r"),
        Grant(3, 1, 0),
        OutputMessage(0, 0, Code(torch.ones(4, 4))),
        CodeGradient(0, 0, torch.ones(4, 4)),
        TransportError("too late", code="stale-turn"),
    )
    end = net.Script(Welcome(0, "r"), Finished("schedule", 3))
    options = {"rounds": "parallel", "give_up_seconds": 5, "allows_rollback": False}
    ended = work(line, end, **options)
    if is_there_again:
        ended = work(net.Script(Welcome(0, "r"), Finished("schedule", 3)), **options)
    assert ended.client.steps == 0
    assert all(
        torch.equal(now, first[k]) for k, now in ended.client.side.state().items()
    )


class LoneOwner:
    """The lines of a round's only owner: a script, with the sum of its own share."""

    def __init__(self, script):
        self._script = script
        self.finish, self.close = script.finish, script.close

    def call(self, message):
        if isinstance(message, Share):
            return masked_sum.totals([message], samples=4)[message.client]
        return self._script.call(message)


@pytest.mark.parametrize("hands_on", [False, True])
def test_an_owner_that_comes_back_hands_in_what_its_newest_grant_asks_for(
    hands_on, net, work
):
    """A restarted server may open the round with another owner to hand the side on."""
    first = net.Script(
        Welcome(0, "r"), Grant(0, 1, 0, hand_on=not hands_on), TransportError("gone")
    )
    second = net.Script(
        Welcome(0, "r"),
        Grant(0, 1, 0, hand_on=hands_on),
        OutputMessage(0, 0, Code(torch.ones(4, 4))),
        CodeGradient(0, 0, torch.ones(4, 4)),
        Finished("schedule", 0),
    )
    options = {"heads": "shared", "rounds": "parallel", "give_up_seconds": 5}
    work(LoneOwner(first), LoneOwner(second), **options)
    (done,) = (one for one in second.heard if isinstance(one, TurnDone))
    assert bool(done.side) == hands_on


def test_an_owner_begins_a_round_anew_if_the_side_it_began_with_has_changed(net, work):
    """A server that went back repeats rounds, perhaps with other owners in them."""
    terms = {"heads": "shared", "rounds": "parallel"}

    def sealed(weight):
        ends = net.Ends(**terms)
        for parameter in ends.side.modules.parameters():
            parameter.data.fill_(weight)
        client = ends.client_with(ends.side, 0)
        return HandOffs(client, ends.contract, KEY).seal("r", 3)

    first = net.Script(
        Welcome(0, "r"), Grant(4, 1, 0, side=sealed(0.1)), TransportError("gone")
    )
    second = net.Script(
        Welcome(0, "r"),
        Grant(4, 1, 0, side=sealed(0.2)),
        OutputMessage(0, 0, Code(torch.ones(4, 4))),
        CodeGradient(0, 0, torch.ones(4, 4)),
        Finished("schedule", 4),
    )
    work(LoneOwner(first), LoneOwner(second), give_up_seconds=5, **terms)
    before, after = (
        next(one for one in line.heard if isinstance(one, CodeMessage))
        for line in (first, second)
    )
    assert not torch.equal(before.code.values, after.code.values)
