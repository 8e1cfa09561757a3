"""Who may speak when, without sockets: a session is a generator."""

import threading
import time

import pytest

from lightsplit.errors import (
    ConfigError,
    RemoteError,
    RunError,
    TransportError,
)
from lightsplit.protocol.control import Finished, Grant, Heard, Hello, Ready, TurnDone
from lightsplit.training import checkpoint
from lightsplit.training.coordinator import Coordinator
from lightsplit.training.plan import Plan


@pytest.fixture
def make(net, tmp_path):
    def make(plan=None, names=net.NAMES, server=None, **terms):
        return Coordinator(
            server or net.CountingServer(),
            net.make_contract(**terms),
            plan or Plan(epochs=2),
            run="run",
            folder=tmp_path,
            names=names,
        )

    return make


@pytest.fixture
def alone(make):
    """A run of one client: no one to wait for."""

    def alone(plan=None, **terms):
        return make(plan, names=["alice"], clients=1, **terms)

    return alone


@pytest.fixture
def enter(net):
    """Return what brings a client to its turn."""

    def enter(coordinator, name="alice", batches=2):
        line = net.DirectLine(coordinator)
        line.index = line.call(
            Hello(name, coordinator.contract.to_json(), "train")
        ).index
        line.order = line.call(Ready(batches))
        return line

    return enter


def take_turn(net, line, order):
    """Do the steps of an order and return the next one."""
    for step in range(order.first_step, order.first_step + order.steps):
        line.call(net.code(line.index, step))
        line.call(net.gradient(line.index, step))
    return line.call(TurnDone(order.turn, loss=0.5))


def test_a_client_alone_takes_all_turns(net, alone, enter):
    coordinator = alone()
    line = enter(coordinator)
    order = line.order
    while isinstance(order, Grant):
        order = take_turn(net, line, order)
    assert order == Finished("schedule", 3)
    assert not coordinator.may_close
    line.finish(Heard())
    assert coordinator.may_close
    assert coordinator._course._server.applied == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert coordinator.progress.samples == 8


def test_the_server_stays_for_those_who_have_not_heard_of_the_end(net, alone, enter):
    coordinator = alone(Plan(max_steps=1))
    line = enter(coordinator)
    take_turn(net, line, line.order)
    line.close()  # as if the answer was lost
    assert not coordinator.wait(0)
    again = enter(coordinator)
    assert isinstance(again.order, Finished)
    again.finish(Heard())
    assert coordinator.wait(0)


def test_a_client_that_read_of_the_end_but_did_not_say_so_is_not_counted_on(
    net, alone, enter
):
    coordinator = alone(Plan(max_steps=1))
    line = enter(coordinator)
    assert isinstance(take_turn(net, line, line.order), Finished)
    line.end()
    assert coordinator.members[0].peer is None
    assert not coordinator.members[0].is_told
    assert not coordinator.wait(0)


def test_only_an_acknowledgement_answers_the_end(net, alone, enter):
    coordinator = alone(Plan(max_steps=1))
    line = enter(coordinator)
    take_turn(net, line, line.order)
    with pytest.raises(RemoteError, match="expected Heard, got Ready"):
        line.call(Ready(1))
    assert not coordinator.members[0].is_told


def test_the_server_does_not_stay_for_ever(net, alone, enter):
    coordinator = alone(Plan(max_steps=1, step_timeout_seconds=0.05))
    line = enter(coordinator)
    take_turn(net, line, line.order)
    line.close()
    began = time.monotonic()
    while not coordinator.wait(0.01):
        assert time.monotonic() - began < 30
    assert not coordinator.members[0].is_told


def test_a_silent_client_loses_its_turn_and_its_open_step(net, alone, enter):
    coordinator = alone(Plan(step_timeout_seconds=0.05))
    line = enter(coordinator)
    line.call(net.code(0, 0))
    server = coordinator._course._server
    assert server.open == (0, 0)
    began = time.monotonic()
    while coordinator.members[0].peer is not None:
        coordinator.wait(0.01)
        assert time.monotonic() - began < 30
    assert server.open is None
    with pytest.raises(TransportError):
        line.call(net.gradient(0, 0))
    again = enter(coordinator)
    assert (again.order.turn, again.order.done) == (0, 0)
    take_turn(net, again, again.order)
    assert server.applied == [(0, 0)]


def test_a_client_whose_message_is_being_worked_on_is_not_silent(net, alone, enter):
    """However long the server takes, and whoever asks meanwhile."""
    coordinator = alone(Plan(step_timeout_seconds=0.05))
    line = enter(coordinator)
    server, answer = coordinator._course._server, coordinator._course._server.answer

    def slow(request):
        time.sleep(0.15)
        return answer(request)

    server.answer = slow
    ticking = threading.Event()

    def tick():
        while not ticking.is_set():
            coordinator.wait(0.01)

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        line.call(net.code(0, 0))
        line.call(net.gradient(0, 0))
    finally:
        ticking.set()
        ticker.join()
    assert server.applied == [(0, 0)]


def test_a_replaced_connection_is_stale_and_its_step_undone(net, alone, enter):
    coordinator = alone()
    older = enter(coordinator)
    older.call(net.code(0, 0))
    newer = enter(coordinator)
    with pytest.raises(TransportError):
        older.call(net.gradient(0, 0))
    take_turn(net, newer, newer.order)
    assert coordinator._course._server.applied == [(0, 0)]


def test_a_refusal_ends_the_session_and_is_told(net, alone, enter):
    coordinator = alone()
    line = enter(coordinator)
    with pytest.raises(RemoteError, match="alice is client 0, not 7"):
        line.call(net.code(7, 0))
    assert line.peer.is_alive()  # not cancelled: the client must read why
    assert coordinator.members[0].peer is None


def test_a_message_that_is_no_step_is_refused_in_a_turn(alone, enter):
    line = enter(alone())
    with pytest.raises(RemoteError, match="expected a step, got Ready"):
        line.call(Ready(2))


def test_the_first_message_must_be_hello(net, alone):
    with pytest.raises(RemoteError, match="expected Hello, got Ready"):
        net.DirectLine(alone()).call(Ready(1))


def test_the_second_message_must_be_ready(net, alone):
    coordinator = alone()
    line = net.DirectLine(coordinator)
    line.call(Hello("alice", coordinator.contract.to_json()))
    with pytest.raises(RemoteError, match="expected Ready, got TurnDone"):
        line.call(TurnDone(0))
    assert coordinator.members[0].peer is None


# The end of a server's life.


def test_a_stop_between_turns_saves_and_ends(net, alone, enter, tmp_path):
    coordinator = alone(Plan(epochs=2))
    line = enter(coordinator)
    take_turn(net, line, line.order)
    line.close()
    coordinator.stop()
    assert coordinator.wait(0)
    assert coordinator.finished is None
    _, content = checkpoint.read(tmp_path, coordinator.contract.digest)
    assert content["progress"]["steps"] == 1
    again = alone(Plan(epochs=2))
    assert again.progress.client_steps == [1]
    assert enter(again).order.first_step == 1


def test_a_stop_waits_for_the_end_of_the_turn(net, alone, enter, tmp_path):
    coordinator = alone()
    line = enter(coordinator)
    line.call(net.code(0, 0))
    coordinator.stop()
    assert not coordinator.wait(0)
    line.call(net.gradient(0, 0))
    with pytest.raises(TransportError, match="may come back") as caught:
        line.call(TurnDone(0))
    assert caught.value.code == "shutting-down"
    assert coordinator.wait(0)
    _, content = checkpoint.read(tmp_path, coordinator.contract.digest)
    assert content["progress"]["steps"] == 1


def test_a_stop_does_not_wait_for_a_client_that_left_in_its_turn(
    net, alone, enter, tmp_path
):
    coordinator = alone(Plan(turn_steps=2), turn_steps=2)
    line = enter(coordinator)
    line.call(net.code(0, 0))
    line.call(net.gradient(0, 0))
    coordinator.stop()
    line.close()
    assert coordinator.wait(0)
    _, content = checkpoint.read(tmp_path, coordinator.contract.digest)
    assert content["progress"]["steps"] == 0  # half a turn is not saved


def test_a_stop_before_anyone_came_ends_at_once(alone, tmp_path):
    coordinator = alone()
    coordinator.stop()
    assert coordinator.wait(0)
    assert not checkpoint.exists(tmp_path)


def test_nobody_gets_a_turn_after_the_stop(alone, enter):
    coordinator = alone()
    coordinator.stop()
    with pytest.raises(TransportError, match="may come back"):
        enter(coordinator)


# Going on.


def test_a_run_that_was_saved_at_its_end_is_over_when_it_is_loaded(net, alone, enter):
    plan = Plan(max_steps=1)
    line = enter(alone(plan))
    take_turn(net, line, line.order)
    again = alone(plan)
    assert not again.is_over  # it can be asked for predictions
    assert enter(again).order == Finished("schedule", 0)
    third = alone(plan)
    third.stop()
    assert third.finished == Finished("schedule", 0)


def test_patience_that_ran_out_stays_out_when_the_run_is_loaded(net, alone, enter):
    plan = Plan(epochs=9, patience=1)
    coordinator = alone(plan)
    line = enter(coordinator)
    order = line.order
    while isinstance(order, Grant):
        line.call(net.code(0, order.first_step))
        line.call(net.gradient(0, order.first_step))
        accuracy = 0.5 if order.evaluate else None
        order = line.call(TurnDone(order.turn, b"", 1.0, accuracy, 1.0))
    assert order.reason == "patience"
    steps = coordinator.progress.steps
    assert steps == 4  # two epochs: one sets the best, the next brings nothing new
    again = alone(plan)
    assert enter(again).order.reason == "patience"
    assert again.progress.steps == steps


def test_a_run_cannot_be_called_shorter_than_it_is(net, alone, enter):
    line = enter(alone(Plan(epochs=2)))
    order = line.order
    for _ in range(3):
        order = take_turn(net, line, order)
    line.close()
    coordinator = alone(Plan(epochs=2))
    assert coordinator.progress.steps == 2  # saved at the end of the first epoch
    with pytest.raises(ConfigError, match="at step 2, beyond the 1 asked for"):
        alone(Plan(max_steps=1))


def test_other_names_than_before_are_refused_before_anyone_comes(
    net, alone, make, enter
):
    line = enter(alone())
    take_turn(net, line, line.order)
    with pytest.raises(RunError, match="begun by alice, in this order; got bob"):
        make(names=["bob"], clients=1)


def test_the_name_of_the_run_and_all_places_are_kept_from_the_first_order(
    net, tmp_path
):
    def make(run):
        return Coordinator(
            net.CountingServer(),
            net.make_contract(clients=1),
            Plan(),
            run=run,
            folder=tmp_path,
        )

    first = make("first")
    line = net.DirectLine(first)
    assert line.call(Hello("zoe", first.contract.to_json())).run == "first"
    assert not checkpoint.exists(tmp_path)
    line.call(Ready(2))
    second = make("second")
    assert second._course.run == "first"
    assert [member.name for member in second.members] == ["zoe"]


def test_a_checkpoint_of_one_process_is_not_a_servers(net, alone, tmp_path):
    coordinator = alone()
    files = {"server.safetensors": b"", "client-0.safetensors": b""}
    progress = coordinator.progress.to_dict()
    content = {"contract": coordinator.contract.digest, "progress": progress}
    checkpoint.write(tmp_path, 4, files, content)
    with pytest.raises(RunError, match="is not a server's checkpoint"):
        alone()


@pytest.mark.parametrize("turn_steps", [2, 3])
def test_checkpoints_come_when_their_number_is_passed(
    turn_steps, net, alone, enter, tmp_path
):
    plan = Plan(turn_steps=turn_steps, eval_every=1, checkpoint_every=4)
    coordinator = alone(plan, turn_steps=turn_steps, heads="private")
    line = enter(coordinator, batches=12)
    order, saved = line.order, []
    while isinstance(order, Grant):
        order = take_turn(net, line, order)
        saved.append((tmp_path / "latest").read_text())
    expected = {2: {0, 4, 8, 12}, 3: {0, 6, 9, 12}}[turn_steps]
    assert {int(name.removeprefix("step-")) for name in saved} == expected


def test_what_the_modules_cannot_compute_is_refused(net, alone, enter):
    coordinator = alone()

    def fail(_request):
        raise RuntimeError("mat1 and mat2\ncannot be multiplied")

    coordinator._course._server.answer = fail
    line = enter(coordinator)
    with pytest.raises(RemoteError, match="step 0 cannot be computed: mat1 and mat2 c"):
        line.call(net.code(0, 0))
