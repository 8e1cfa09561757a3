"""The life of a run without sockets: sessions are called directly."""

import time

import pytest

from lightsplit.deployment.coordinator import Coordinator
from lightsplit.errors import (
    ConfigError,
    RunError,
    TransportError,
)
from lightsplit.protocol.control import Finished, Grant, Heard, Hello, Ready, TurnDone
from lightsplit.runs import checkpoint_folder
from lightsplit.runs.plan import RunPlan


def test_a_client_alone_takes_all_turns(net, alone, enter):
    coordinator = alone()
    line = enter(coordinator)
    order = line.order
    while isinstance(order, Grant):
        order = net.take_turn(line, order)
    assert order == Finished("schedule", 3)
    assert not coordinator.may_close
    line.finish(Heard())
    assert coordinator.may_close
    assert coordinator._run._steps._server.applied == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert coordinator.progress.samples == 8


def test_the_server_stays_until_every_client_knows_of_the_end(net, alone, enter):
    coordinator = alone(RunPlan(max_steps=1))
    line = enter(coordinator)
    net.take_turn(line, line.order)
    line.close()  # as if the answer was lost
    assert not coordinator.wait(0)
    again = enter(coordinator)
    assert isinstance(again.order, Finished)
    again.finish(Heard())
    assert coordinator.wait(0)


def test_a_client_that_read_of_the_end_but_did_not_say_so_is_not_counted_on(
    net, alone, enter
):
    coordinator = alone(RunPlan(max_steps=1))
    line = enter(coordinator)
    assert isinstance(net.take_turn(line, line.order), Finished)
    line.end()
    assert coordinator.members[0].peer is None
    assert not coordinator.members[0].is_told
    assert not coordinator.wait(0)


def test_the_server_does_not_stay_for_ever(net, alone, enter):
    coordinator = alone(RunPlan(max_steps=1, step_timeout_seconds=0.05))
    line = enter(coordinator)
    net.take_turn(line, line.order)
    line.close()
    began = time.monotonic()
    while not coordinator.wait(0.01):
        assert time.monotonic() - began < 120
    assert not coordinator.members[0].is_told


def test_a_silent_client_loses_its_turn_and_its_open_step(net, alone, enter):
    coordinator = alone(RunPlan(step_timeout_seconds=0.05))
    line = enter(coordinator)
    line.call(net.code(0, 0))
    server = coordinator._run._steps._server
    assert server.open == (0, 0)
    began = time.monotonic()
    while coordinator.members[0].peer is not None:
        coordinator.wait(0.01)
        assert time.monotonic() - began < 120
    assert server.open is None
    with pytest.raises(TransportError):
        line.call(net.gradient(0, 0))
    again = enter(coordinator)
    assert (again.order.turn, again.order.done) == (0, 0)
    net.take_turn(again, again.order)
    assert server.applied == [(0, 0)]


# The end of a server's life.


def test_a_stop_between_turns_saves_and_ends(net, alone, enter, tmp_path):
    coordinator = alone(RunPlan(epochs=2))
    line = enter(coordinator)
    net.take_turn(line, line.order)
    line.close()
    coordinator.stop()
    assert coordinator.wait(0)
    assert coordinator.finished is None
    _, content = checkpoint_folder.read(tmp_path, coordinator.contract.digest)
    assert content["progress"]["steps"] == 1
    again = alone(RunPlan(epochs=2))
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
    _, content = checkpoint_folder.read(tmp_path, coordinator.contract.digest)
    assert content["progress"]["steps"] == 1


def test_a_stop_does_not_wait_for_a_client_that_left_in_its_turn(
    net, alone, enter, tmp_path
):
    coordinator = alone(RunPlan(turn_steps=2), turn_steps=2)
    line = enter(coordinator)
    line.call(net.code(0, 0))
    line.call(net.gradient(0, 0))
    coordinator.stop()
    line.close()
    assert coordinator.wait(0)
    _, content = checkpoint_folder.read(tmp_path, coordinator.contract.digest)
    assert content["progress"]["steps"] == 0  # half a turn is not saved


def test_a_stop_before_anyone_came_ends_at_once(alone, tmp_path):
    coordinator = alone()
    coordinator.stop()
    assert coordinator.wait(0)
    assert not checkpoint_folder.exists(tmp_path)


def test_nobody_gets_a_turn_after_the_stop(alone, enter):
    coordinator = alone()
    coordinator.stop()
    with pytest.raises(TransportError, match="may come back"):
        enter(coordinator)


# Going on.


def test_a_run_that_was_saved_at_its_end_is_over_when_it_is_loaded(net, alone, enter):
    plan = RunPlan(max_steps=1)
    line = enter(alone(plan))
    net.take_turn(line, line.order)
    again = alone(plan)
    assert again.is_over
    assert not again.may_close  # it can be asked for predictions
    assert enter(again).order == Finished("schedule", 0)
    third = alone(plan)
    third.stop()
    assert third.finished == Finished("schedule", 0)


def test_a_server_that_need_not_stay_waits_for_those_who_have_not_heard(
    net, alone, enter
):
    plan = RunPlan(max_steps=1, step_timeout_seconds=60)
    line = enter(alone(plan))
    net.take_turn(line, line.order)
    again = alone(plan, stays=lambda steps: steps != 1)
    assert again.is_over
    assert not again.wait(0)
    late = enter(again)
    late.finish(Heard())
    assert again.wait(0)
    counts = again.members[0].meter.by_kind()
    third = alone(plan, stays=lambda _steps: False)
    assert third.wait(0)  # it knows from the disk that Alice has heard
    assert third.members[0].meter.by_kind() == counts


def test_who_has_heard_of_an_end_has_not_heard_of_a_later_one(net, alone, enter):
    first = alone(RunPlan(max_steps=1))
    line = enter(first)
    net.take_turn(line, line.order)
    line.finish(Heard())
    longer = RunPlan(max_steps=2, step_timeout_seconds=60)
    second = alone(longer)
    assert not second.is_over
    line = enter(second)
    net.take_turn(line, line.order)
    third = alone(longer, stays=lambda _steps: False)
    assert third.is_over
    assert not third.wait(0)


def test_patience_that_ran_out_stays_out_when_the_run_is_loaded(net, alone, enter):
    plan = RunPlan(epochs=9, patience=1)
    coordinator = alone(plan)
    line = enter(coordinator)
    order = line.order
    while isinstance(order, Grant):
        line.call(net.code(0, order.first_step))
        line.call(net.gradient(0, order.first_step))
        figures = (1.0, 0.5) if order.evaluate else ()
        order = line.call(TurnDone(order.turn, b"", 1.0, figures))
    assert order.reason == "patience"
    steps = coordinator.progress.steps
    assert steps == 4  # two epochs: one sets the best, the next brings nothing new
    again = alone(plan)
    assert enter(again).order.reason == "patience"
    assert again.progress.steps == steps


def test_a_run_cannot_be_called_shorter_than_it_is(net, alone, enter):
    line = enter(alone(RunPlan(epochs=2)))
    order = line.order
    for _ in range(3):
        order = net.take_turn(line, order)
    line.close()
    coordinator = alone(RunPlan(epochs=2))
    assert coordinator.progress.steps == 2  # saved at the end of the first epoch
    with pytest.raises(ConfigError, match="at step 2, beyond the 1 asked for"):
        alone(RunPlan(max_steps=1))


def test_other_names_than_before_are_refused_before_anyone_comes(
    net, alone, make_coordinator, enter
):
    line = enter(alone())
    net.take_turn(line, line.order)
    with pytest.raises(RunError, match="began the run, alice, in this order; got bob"):
        make_coordinator(names=["bob"], clients=1)


def test_the_name_of_the_run_and_all_places_are_kept_from_the_first_order(
    net, tmp_path
):
    def make(run):
        return Coordinator(
            net.CountingServer(),
            net.make_contract(clients=1),
            RunPlan(),
            run=run,
            folder=tmp_path,
        )

    first = make("first")
    line = net.DirectLine(first)
    assert line.call(Hello("zoe", first.contract.to_json())).run == "first"
    assert not checkpoint_folder.exists(tmp_path)
    line.call(Ready(2))
    second = make("second")
    assert second.run_name == "first"
    assert [member.name for member in second.members] == ["zoe"]


def test_a_checkpoint_of_one_process_is_not_a_servers(net, alone, tmp_path):
    coordinator = alone()
    files = {"server.safetensors": b"", "client-0.safetensors": b""}
    progress = coordinator.progress.to_dict()
    content = {"contract": coordinator.contract.digest, "progress": progress}
    checkpoint_folder.write(tmp_path, 4, files, content)
    with pytest.raises(RunError, match="is not a server's checkpoint"):
        alone()


@pytest.mark.parametrize("turn_steps", [2, 3])
def test_checkpoints_come_when_their_number_is_passed(
    turn_steps, net, alone, enter, tmp_path
):
    plan = RunPlan(turn_steps=turn_steps, eval_every=1, checkpoint_every=4)
    coordinator = alone(plan, turn_steps=turn_steps, heads="private")
    line = enter(coordinator, batches=12)
    order, saved = line.order, []
    while isinstance(order, Grant):
        order = net.take_turn(line, order)
        saved.append((tmp_path / "latest").read_text())
    expected = {2: {0, 4, 8, 12}, 3: {0, 6, 9, 12}}[turn_steps]
    assert {int(name.removeprefix("step-")) for name in saved} == expected
