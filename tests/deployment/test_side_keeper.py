"""A client's side at the start of a turn, whatever happened before."""

import pytest
import torch

from lightsplit.deployment.join_options import JoinOptions
from lightsplit.deployment.side_keeper import SideKeeper
from lightsplit.errors import ConfigError, RunError
from lightsplit.protocol.control import Finished, Grant
from lightsplit.runtime import HandOff
from lightsplit.transports.sealing import SealingKey

KEY = SealingKey.generate()


@pytest.fixture
def make(net, tmp_path):
    """Return what makes a client with its keeper and its batches."""

    def make(heads="private", folder=tmp_path, hand_off="fp32"):
        ends = net.Ends(heads=heads)
        client = ends.client_with(ends.side, 0)
        client.hand_off = HandOff(ends.side, hand_off)
        options = JoinOptions(key=KEY, state_folder=folder)
        keeper = SideKeeper(client, ends.contract, options)
        return client, keeper, ends.batches[0]

    return make


def copied(client):
    return {name: tensor.clone() for name, tensor in client.side.state().items()}


def are_same(mine, theirs):
    return all(torch.equal(mine[name], theirs[name]) for name in theirs)


def take(client, keeper, batches, grant):
    keeper.enter(grant, "run")
    client.run_turn(batches, grant.steps)
    return keeper.leave(grant, "run")


def test_a_private_side_returns_to_the_step_that_the_server_names(make):
    client, keeper, batches = make()
    states = [copied(client)]
    for step in range(3):
        assert take(client, keeper, batches, Grant(step, 1, step)) == b""
        states.append(copied(client))
    for step in (1, 0, 2):
        keeper.enter(Grant(step, 1, step), "run")
        assert client.steps == step
        assert are_same(client.side.state(), states[step])
        keeper.leave(Grant(step, 0, step), "run")


def test_a_turn_that_broke_off_begins_with_the_side_it_had(make):
    client, keeper, batches = make()
    take(client, keeper, batches, Grant(0, 1, 0))
    before = copied(client)
    keeper.enter(Grant(1, 2, 1), "run")
    client.run_turn(batches, 1)
    keeper.enter(Grant(1, 2, 1), "run")
    assert are_same(client.side.state(), before)


def test_sides_that_the_server_will_not_ask_for_are_deleted(make, tmp_path):
    client, keeper, batches = make()
    for step in range(3):
        take(client, keeper, batches, Grant(step, 1, step, oldest_step=step))
    assert sorted(path.stem for path in tmp_path.iterdir()) == [
        "side-00000002",
        "side-00000003",
    ]


def test_a_restarted_client_finds_its_side_in_the_folder(make):
    client, keeper, batches = make()
    take(client, keeper, batches, Grant(0, 2, 0))
    again, keeper, _ = make()
    keeper.enter(Grant(1, 1, 2), "run")
    assert are_same(again.side.state(), client.side.state())


def test_without_a_folder_a_client_cannot_come_back(make):
    _, keeper, _ = make(folder=None)
    with pytest.raises(RunError, match="step 7, but the side of that step was not ke"):
        keeper.enter(Grant(4, 1, 7), "run")


def test_a_shared_side_goes_from_client_to_client(make):
    alice, giver, batches = make("shared")
    sealed = take(alice, giver, batches, Grant(0, 1, 0))
    bob, taker, _ = make("shared")
    taker.enter(Grant(1, 1, 0, side=sealed), "run")
    assert are_same(bob.side.state(), alice.side.state())


def test_the_first_turn_begins_with_the_first_weights(make):
    client, keeper, batches = make("shared")
    first = copied(client)
    take(client, keeper, batches, Grant(0, 1, 0))
    keeper.enter(Grant(0, 1, 0), "run")
    assert are_same(client.side.state(), first)


def test_the_last_side_of_a_run_is_taken(make):
    alice, giver, batches = make("shared")
    sealed = take(alice, giver, batches, Grant(0, 1, 0))
    bob, taker, _ = make("shared")
    taker.finish(Finished("schedule", 0, sealed), "run")
    assert are_same(bob.side.state(), alice.side.state())


def test_a_client_that_comes_to_a_finished_run_has_the_side_it_kept(make):
    client, keeper, batches = make()
    take(client, keeper, batches, Grant(0, 2, 0))
    again, keeper, _ = make()
    keeper.finish(Finished(), "run")
    assert again.steps == 2
    assert are_same(again.side.state(), client.side.state())


def test_a_turn_that_the_run_ended_without_is_undone(make):
    client, keeper, batches = make()
    take(client, keeper, batches, Grant(0, 1, 0))
    before = copied(client)
    keeper.enter(Grant(1, 2, 1), "run")
    client.run_turn(batches, 1)
    keeper.finish(Finished(), "run")
    assert are_same(client.side.state(), before)


def test_a_side_of_another_run_in_the_folder_is_not_taken_for_this_runs(make):
    client, keeper, batches = make()
    take(client, keeper, batches, Grant(0, 1, 0))
    mine = copied(client)
    take(client, keeper, batches, Grant(1, 2, 1))  # as if of a longer run before
    again, keeper, _ = make()
    keeper.finish(Finished(), "run", 1)
    assert are_same(again.side.state(), mine)
    assert again.steps == 1
    third, keeper, _ = make()
    first = copied(third)
    keeper.finish(Finished(), "run", 0)
    assert are_same(third.side.state(), first)


def test_a_client_that_never_had_a_turn_ends_with_its_first_weights(make):
    client, keeper, _ = make()
    first = copied(client)
    keeper.finish(Finished(), "run")
    assert are_same(client.side.state(), first)


def test_a_residual_stays_in_the_folder(make, tmp_path):
    client, keeper, batches = make("shared", hand_off="int8")
    sealed = take(client, keeper, batches, Grant(0, 1, 0))
    left = dict(client.kept)
    assert left
    again, keeper, _ = make("shared", hand_off="int8")
    again.steps = 9
    keeper.enter(Grant(1, 1, 1, side=sealed), "run")
    assert are_same(again.kept, left)


def test_a_residual_needs_a_folder_before_anything_else(make):
    with pytest.raises(ConfigError, match="a folder is needed"):
        make("shared", folder=None, hand_off="int8")
