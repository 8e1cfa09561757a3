import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.codecs import Code
from lightsplit.deployment.reply_cache import ReplyCache
from lightsplit.protocol import CodeGradient, OutputMessage
from lightsplit.protocol.frames import PART_BYTES


def output(step, values=64):
    return OutputMessage(1, step, Code(torch.full((1, values), float(step))))


def equal(one, other):
    return one.step == other.step and torch.equal(
        one.output.values, other.output.values
    )


def filled(steps, **options):
    store = ReplyCache(**options)
    for step in range(steps):
        store.put(("code", step), output(step))
    return store


@pytest.mark.parametrize("memory_bytes", [0, 1000, 2**20])
def test_replies_come_back_the_same_wherever_they_lie(memory_bytes):
    store = filled(10, memory_bytes=memory_bytes)
    assert len(store) == 10
    for step in reversed(range(10)):
        assert equal(store.get(("code", step)), output(step))
    store.clear()


def test_the_oldest_replies_go_to_a_file_when_memory_is_full():
    store = filled(7, memory_bytes=3 * output(0).payload_bytes)
    assert [step for _, step in store._recent] == [4, 5, 6]
    assert [step for _, step in store._older] == [0, 1, 2, 3]
    assert equal(store.get(("code", 1)), output(1))  # reading disturbs nothing
    store.put(("code", 7), output(7))
    assert all(equal(store.get(("code", n)), output(n)) for n in range(8))
    store.clear()


def test_a_dropped_reply_frees_its_memory():
    store = filled(4)
    whole = store._recent_bytes
    store.drop(("code", 3))
    store.drop(("code", 9))
    assert store.get(("code", 3)) is None
    store.put(("code", 3), output(3))
    assert store._recent_bytes == whole


def test_recent_replies_come_back_as_the_very_objects():
    store = ReplyCache(memory_bytes=2 * output(0).payload_bytes)
    replies = [output(step) for step in range(5)]
    for reply in replies:
        store.put(("code", reply.step), reply)
    assert all(store.get(("code", reply.step)) is reply for reply in replies[-2:])
    assert store.get(("code", 5)) is None
    store.clear()


def test_a_reply_of_several_frames_comes_back_whole():
    store = ReplyCache(memory_bytes=0)
    long = CodeGradient(0, 0, torch.rand(2, PART_BYTES // 4), loss=0.25)
    store.put(("code", 0), long)
    for step in (1, 2):
        store.put(("code", step), output(step))
    given = store.get(("code", 0))
    assert given.loss == 0.25
    assert torch.equal(given.gradient, long.gradient)
    store.clear()


@pytest.mark.parametrize("memory_bytes", [0, 2**20])
def test_a_store_that_was_cleared_holds_nothing(memory_bytes):
    store = filled(5, memory_bytes=memory_bytes)
    store.clear()
    assert not len(store)
    assert store.get(("code", 0)) is None
    assert store._file is None


@settings(max_examples=40, deadline=None)
@given(
    memory=st.integers(0, 2000),
    actions=st.lists(st.tuples(st.booleans(), st.integers(0, 6)), max_size=30),
)
def test_a_limit_changes_nothing_but_where_a_reply_lies(memory, actions):
    store, expected = ReplyCache(memory), {}
    for is_put, step in actions:
        key = ("code", step)
        if is_put and key not in expected:
            expected[key] = output(step)
            store.put(key, expected[key])
        elif not is_put:
            store.drop(key)
            expected.pop(key, None)
    assert len(store) == len(expected)
    for step in range(7):
        given = store.get(("code", step))
        wanted = expected.get(("code", step))
        assert (given is None) == (wanted is None)
        assert given is None or equal(given, wanted)
    store.clear()
