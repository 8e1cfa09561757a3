"""Every update of every client is applied exactly once, in the order they come."""

import contextlib
import threading
import time

import pytest
import torch

from lightsplit.errors import ProtocolError
from lightsplit.protocol import CodeMessage, OutputGradient
from lightsplit.protocol.control import Update, Updated

ALIVE = bool  # a client that waits for its reply: bool(1)


@pytest.fixture
def make_loops(kit, tmp_path):
    import lightsplit

    def make(clients=2, folder="saves", **options):
        cut = {**kit.CUT, "clients": clients}
        host = lightsplit.host(kit.make_network(), optimizer=kit.ADAM, **cut)
        return host.open(folder and tmp_path / folder, **options)

    return make


class Owner:
    """Sends the messages of one client by hand."""

    def __init__(self, loops, name):
        self.loops = loops
        self.member, self.book = loops.enter(name)
        self.step = 0

    def ask(self, message):
        reply = self.loops.answer(self.book, message, lambda: True)
        self.loops.settle()
        return reply

    def code(self, **more):
        generator = torch.Generator().manual_seed(100 * self.member.index + self.step)
        values = torch.rand(4, 6, generator=generator)
        from lightsplit.codecs import Code

        return CodeMessage(self.member.index, self.step, Code(values), **more)

    def forward(self):
        return self.ask(self.code())

    def backward(self):
        gradient = torch.ones(4, 6) / 7
        reply = self.ask(OutputGradient(self.member.index, self.step, gradient))
        self.step += 1
        return reply

    def apply(self, number):
        return self.ask(Update("apply", number))

    def update(self, number):
        self.forward()
        self.backward()
        return self.apply(number)


def weights(loops):
    return {name: one.clone() for name, one in loops.server.side.state().items()}


def wait_for_queue(loops):
    """Wait until a client waits for an update of another one to end."""
    while not loops._queue:
        time.sleep(0.001)


def are_equal(one, other):
    return one.keys() == other.keys() and all(
        torch.equal(one[name], other[name]) for name in one
    )


def test_a_repeated_message_gets_its_reply_again_and_changes_nothing(make_loops):
    loops = make_loops()
    alice = Owner(loops, "alice")
    first = alice.ask(alice.code())
    assert alice.ask(alice.code()) is first
    alice.backward()
    assert alice.apply(1) == Updated(1, 0)
    before = weights(loops)
    assert alice.apply(1) == Updated(1, 0)
    assert are_equal(weights(loops), before)


def test_updates_are_numbered(make_loops):
    alice = Owner(make_loops(), "alice")
    with pytest.raises(ProtocolError, match="expected update 1 of alice, got 3"):
        alice.apply(3)


def test_another_client_waits_until_the_update_is_over(make_loops):
    loops = make_loops()
    alice, bob = Owner(loops, "alice"), Owner(loops, "bob")
    alice.forward()
    waiting = threading.Thread(target=bob.forward)
    waiting.start()
    wait_for_queue(loops)
    assert waiting.is_alive()
    alice.backward()
    alice.apply(1)
    waiting.join(120)
    assert not waiting.is_alive()


def test_no_update_of_another_comes_between_a_code_and_its_own_update(make_loops):
    loops = make_loops(clients=3)
    owners = [Owner(loops, name) for name in ("alice", "bob", "carol")]
    came_between = []

    def train(owner):
        for number in range(1, 8):
            owner.forward()
            seen = weights(loops)
            owner.backward()
            came_between.append(not are_equal(weights(loops), seen))
            owner.apply(number)

    threads = [threading.Thread(target=train, args=(one,)) for one in owners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(came_between) == 3 * 7
    assert sum(came_between) == loops.contract.staleness == 0


def test_a_client_that_waits_is_served_before_one_that_comes_again(make_loops):
    loops = make_loops()
    alice, bob = Owner(loops, "alice"), Owner(loops, "bob")
    order = []

    def update(owner, number):
        owner.forward()
        order.append(owner.book.name)
        owner.backward()
        owner.apply(number)

    alice.forward()
    waiting = threading.Thread(target=update, args=(bob, 1))
    waiting.start()
    wait_for_queue(loops)
    alice.backward()
    with loops.lock:  # Alice comes again before Bob can wake
        alice.apply(1)
        update(alice, 2)
    waiting.join(120)
    assert order == ["bob", "alice"]


def test_a_save_leaves_the_update_of_another_client_open(make_loops):
    saved, plain = make_loops(folder="saved"), make_loops(folder=None)
    for loops in (saved, plain):
        alice, bob = Owner(loops, "alice"), Owner(loops, "bob")
        bob.update(1)
        alice.forward()
        if loops is saved:
            bob.ask(Update("keep", 1))
        alice.backward()
        alice.apply(1)
    assert are_equal(weights(saved), weights(plain))


def test_predictions_do_not_wait(make_loops):
    loops = make_loops()
    alice, bob = Owner(loops, "alice"), Owner(loops, "bob")
    alice.forward()
    bob.ask(bob.code(is_training=False))


@pytest.mark.slow
def test_a_client_that_has_gone_stops_waiting(make_loops):
    loops = make_loops()
    alice, bob = Owner(loops, "alice"), Owner(loops, "bob")
    alice.forward()
    with pytest.raises(ProtocolError, match="cut off"):
        loops.answer(bob.book, bob.code(), lambda: False)


def test_an_update_left_open_is_forgotten_and_sent_again(make_loops):
    loops = make_loops(step_timeout_seconds=0.05)
    alice, bob = Owner(loops, "alice"), Owner(loops, "bob")
    before = weights(loops)
    alice.forward()
    assert not are_equal(weights(loops), before)  # running statistics
    bob.forward()  # after a moment
    loops.server.discard()
    assert are_equal(weights(loops), before)
    with pytest.raises(ProtocolError, match="forgotten") as refused:
        alice.backward()
    assert refused.value.code == "stale-turn"
    assert alice.ask(Update("again", 0)) == Updated(0, 0, 0)


def accumulate(alice):
    alice.forward()
    alice.backward()


ENDLESS = {
    "predictions": lambda alice: alice.ask(alice.code(is_training=False)),
    "the same message": lambda alice: alice.ask(alice.code()),
    "accumulation": accumulate,
}


@pytest.mark.parametrize("what", ENDLESS)
def test_messages_do_not_prolong_an_update_for_which_others_wait(what, make_loops):
    loops = make_loops(step_timeout_seconds=0.2)
    alice, bob = Owner(loops, "alice"), Owner(loops, "bob")
    alice.forward()
    waiting = threading.Thread(target=bob.forward)
    waiting.start()
    deadline = time.monotonic() + 20
    if what == "accumulation":
        alice.backward()
    with contextlib.suppress(ProtocolError):  # the update was forgotten
        while waiting.is_alive() and time.monotonic() < deadline:
            ENDLESS[what](alice)
    has_begun = not waiting.is_alive()
    if not has_begun:  # else this test would not end
        alice.apply(1)
    waiting.join(10)
    assert has_begun


def test_an_update_may_take_its_time_while_nobody_waits(make_loops):
    loops = make_loops()
    alice, bob = Owner(loops, "alice"), Owner(loops, "bob")
    alice.forward()
    loops._opened -= 1000
    waiting = threading.Thread(target=bob.forward)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    alice.backward()
    alice.apply(1)
    waiting.join(10)
    assert loops.applied()["alice"] == 1


def test_a_refused_step_leaves_nothing_behind(make_loops):
    loops = make_loops()
    alice = Owner(loops, "alice")
    before = weights(loops)
    alice.forward()
    with pytest.raises(ProtocolError, match="beyond the contract's norm limit"):
        alice.ask(OutputGradient(0, 0, torch.full((4, 6), 1e9)))
    assert are_equal(weights(loops), before)
    alice.ask(Update("again", 0))
    alice.step = 5
    assert alice.update(1) == Updated(1, 0)


def test_a_restarted_server_goes_on_from_its_save(make_loops):
    loops = make_loops()
    alice = Owner(loops, "alice")
    for number in (1, 2):
        alice.update(number)
    assert alice.ask(Update("keep", 2)) == Updated(2, 2)
    kept = weights(loops)
    alice.update(3)
    again = make_loops()
    assert again.run == loops.run
    assert again.applied() == {"alice": 2}
    assert are_equal(weights(again), kept)


def test_the_server_saves_every_so_often(make_loops):
    alice = Owner(make_loops(save_every=2), "alice")
    assert [alice.update(number).saved for number in (1, 2, 3)] == [0, 2, 2]


def test_a_client_alone_takes_the_server_back_to_its_checkpoint(make_loops):
    loops = make_loops()
    alice = Owner(loops, "alice")
    alice.update(1)
    alice.ask(Update("keep", 1))
    kept = weights(loops)
    alice.update(2)
    assert alice.ask(Update("start", 1)) == Updated(1, 1)
    assert are_equal(weights(loops), kept)
    assert loops.applied() == {"alice": 1}
    assert make_loops().applied() == {"alice": 1}


def test_updates_that_others_have_built_on_are_answered_and_not_applied_twice(
    make_loops,
):
    loops = make_loops()
    alice, bob = Owner(loops, "alice"), Owner(loops, "bob")
    alice.update(1)
    alice.ask(Update("keep", 1))
    alice.update(2)
    bob.update(1)
    before = weights(loops)
    assert alice.ask(Update("start", 1)) == Updated(1, 1)
    alice.step = 1
    assert alice.update(2).number == 2
    assert are_equal(weights(loops), before)
    alice.update(3)
    assert not are_equal(weights(loops), before)
    assert loops.applied() == {"alice": 3, "bob": 1}


def test_a_client_without_its_checkpoint_is_told_so(make_loops):
    alice = Owner(make_loops(), "alice")
    alice.update(1)
    with pytest.raises(ProtocolError, match="load your checkpoint before the first"):
        alice.ask(Update("start", 0))


def test_a_server_without_its_save_is_refused(make_loops):
    alice = Owner(make_loops(), "alice")
    with pytest.raises(ProtocolError, match="start it with the folder of its last"):
        alice.ask(Update("start", 7))


def test_an_unknown_action_is_refused(make_loops):
    alice = Owner(make_loops(), "alice")
    with pytest.raises(ProtocolError, match="expected start, again, apply or keep"):
        alice.ask(Update("jump", 0))


def test_only_the_named_clients_may_come(make_loops):
    loops = make_loops(names=["alice", "bob"])
    with pytest.raises(ProtocolError, match="'carol' is not among"):
        loops.enter("carol")
