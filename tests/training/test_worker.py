"""A worker over lines that break: what it leaves is what one process leaves."""

import copy
import threading
from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lightsplit.errors import (
    ConfigError,
    ProtocolError,
    RemoteError,
    RunError,
    SealError,
    TransportError,
)
from lightsplit.protocol.control import Finished, Grant, Heard, Ready, TurnDone, Welcome
from lightsplit.runtime import HandOff
from lightsplit.training import worker as worker_module
from lightsplit.training.coordinator import Coordinator
from lightsplit.training.plan import Plan
from lightsplit.training.schedule import Schedule
from lightsplit.training.worker import SideStore, Worker
from lightsplit.transports.sealing import SealingKey

KEY = SealingKey.generate()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(worker_module, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(worker_module, "LONGEST_PAUSE_SECONDS", 0.002)


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
    ends = net.Ends(**terms)
    plan = Plan(turn_steps=turn_steps, epochs=2, step_timeout_seconds=30)
    coordinator = Coordinator(
        ends.server, ends.contract, plan, run="r", folder=folder, names=net.NAMES
    )
    sides = [copy.deepcopy(ends.side) for _ in net.NAMES]
    errors = []

    def work(index, name):
        worker = Worker(
            ends.client_with(sides[index], 0),
            ends.contract,
            name=name,
            connect=lambda: net.DirectLine(coordinator, breaks=breaks),
            batches=ends.batches.__getitem__,
            key=KEY,
            store=SideStore(folder / name),
            give_up_seconds=20,
        )
        try:
            worker.run()
        except Exception as error:  # noqa: BLE001  shown below
            errors.append(error)
            coordinator.stop()

    threads = [
        threading.Thread(target=work, args=pair) for pair in enumerate(net.NAMES)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    return ends.server.side.state(), [side.state() for side in sides]


def assert_same(got, expected):
    for mine, theirs in zip(
        [got[0], *got[1]], [expected[0], *expected[1]], strict=True
    ):
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)


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


class Script:
    """A line whose answers are given."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.heard = []
        self.last = None
        self.is_closed = False

    def call(self, message):
        self.heard.append(message)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def finish(self, last):
        self.last = last

    def close(self):
        self.is_closed = True


@pytest.fixture
def work(net, tmp_path):
    """Return what runs a worker over scripts, one after the other."""

    def work(*scripts, heads="private", **options):
        ends = net.Ends(heads=heads)
        client = ends.client_with(ends.side, 0)
        left = list(scripts)
        known = {"store": SideStore(tmp_path), "key": KEY, "give_up_seconds": 0}
        worker = Worker(
            client,
            ends.contract,
            name="alice",
            connect=lambda: left.pop(0),
            batches=ends.batches.__getitem__,
            **{**known, **options},
        )
        return SimpleNamespace(client=client, finished=worker.run(), ends=ends)

    return work


def test_the_end_is_taken_note_of(work):
    line = Script(Welcome(1, "r"), Finished("schedule", 3))
    assert work(line).finished.reason == "schedule"
    assert line.last == Heard()
    assert line.is_closed
    assert line.heard[1] == Ready(2)  # the batches of client 1


def test_an_index_that_nobody_has_is_refused(work):
    with pytest.raises(ProtocolError, match="below 3, got 3"):
        work(Script(Welcome(3, "r")))


@pytest.mark.parametrize("answer", [Ready(1), Grant(0, 0, 0), Finished()])
def test_only_a_welcome_answers_a_hello(answer, work):
    with pytest.raises(ProtocolError, match="expected a welcome"):
        work(Script(answer))


def test_only_an_order_answers_ready(work):
    with pytest.raises(ProtocolError, match="expected an order, got Welcome"):
        work(Script(Welcome(0, "r"), Welcome(0, "r")))


def test_before_the_first_order_a_server_may_come_back_as_another_run(work):
    """It was killed before it began: nothing was trained under the first name."""
    first = Script(Welcome(0, "before"), TransportError("gone"))
    second = Script(Welcome(1, "after"), Finished())
    ended = work(first, second, give_up_seconds=5)
    assert ended.client.index == 1
    assert second.heard[1] == Ready(2)  # the batches of client 1, not of client 0


@pytest.mark.parametrize("welcome", [Welcome(0, "other"), Welcome(1, "r")])
def test_after_the_first_order_neither_run_nor_place_may_change(welcome, work):
    first = Script(Welcome(0, "r"), Grant(0, 0, 0), TransportError("gone"))
    with pytest.raises(ProtocolError, match="this client is number 0 in run r"):
        work(first, Script(welcome), give_up_seconds=5)


def test_a_server_that_cannot_be_reached_is_given_up(work):
    with pytest.raises(TransportError, match="refused"):
        work(Script(TransportError("connection refused")))


def test_each_try_in_vain_is_told(work):
    told = []
    lines = [Script(TransportError(text)) for text in ("refused", "stops")]
    work(
        *(*lines, Script(Welcome(0, "r"), Finished())),
        give_up_seconds=5,
        away=lambda error: told.append(str(error)),
    )
    assert told == ["refused", "stops"]


def test_a_refusal_is_not_tried_again(work):
    with pytest.raises(RemoteError):
        work(Script(RemoteError("no")), give_up_seconds=600)


def test_the_last_side_must_be_there_and_open(work):
    with pytest.raises(SealError):
        work(Script(Welcome(0, "r"), Finished("schedule", 4, b"")), heads="shared")


def test_shared_heads_need_a_key_before_anything_else(work):
    with pytest.raises(ConfigError, match="a key is needed"):
        work(heads="shared", key=None)


def test_a_side_that_was_not_kept_cannot_be_gone_on_from(work):
    line = Script(Welcome(0, "r"), Grant(4, 1, 7))
    with pytest.raises(RunError, match=r"step 7, but .* does not hold"):
        work(line)
    with pytest.raises(RunError, match="was not kept"):
        work(Script(Welcome(0, "r"), Grant(4, 1, 7)), store=None)


def test_figures_are_told_only_if_one_wants_to(work):
    def end(**options):
        line = Script(Welcome(0, "r"), Grant(0, 0, 0, evaluate=True), Finished())
        work(line, **options)
        return line.heard[2]

    assert end() == TurnDone(0)  # there is no test set
    assert end(reports=False) == TurnDone(0)


def test_sides_are_kept_by_step_until_the_server_needs_them_no_more(tmp_path):
    store = SideStore(tmp_path)
    for step in (1, 2, 3):
        store.save(step, bytes([step]))
    store.forget_before(2)
    assert [store.load(step) for step in (2, 3)] == [b"\2", b"\3"]
    with pytest.raises(RunError, match="step 1"):
        store.load(1)


def test_a_residual_needs_a_folder_before_anything_else(net):
    ends = net.Ends()
    client = ends.client_with(ends.side, 0)
    client.hand_off = HandOff(ends.side, "int8")
    with pytest.raises(ConfigError, match="leave a residual: a folder is needed"):
        Worker(
            client,
            ends.contract,
            name="alice",
            connect=lambda: None,
            batches=ends.batches.__getitem__,
            key=KEY,
        )
