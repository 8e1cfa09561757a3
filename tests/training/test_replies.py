import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.codecs import Code
from lightsplit.protocol import CodeGradient, OutputMessage
from lightsplit.protocol.wire import PART_BYTES
from lightsplit.training.replies import ReplyStore


def output(step, values=64):
    return OutputMessage(1, step, Code(torch.full((1, values), float(step))))


def test_replies_beyond_the_limit_leave_memory_and_come_back_the_same():
    store = ReplyStore(memory_bytes=3 * output(0).payload_bytes)
    for step in range(10):
        store.put(("code", step), output(step))
    assert len(store) == 10
    assert len(store._newest) == 3
    for step in reversed(range(10)):
        given = store.get(("code", step))
        assert (given.client, given.step) == (1, step)
        assert torch.equal(given.output.values, output(step).output.values)
    store.clear()


def test_what_is_in_memory_comes_back_as_the_very_object():
    store, reply = ReplyStore(), output(0)
    store.put(("code", 0), reply)
    assert store.get(("code", 0)) is reply
    assert store.get(("code", 1)) is None


def test_the_newest_reply_stays_in_memory_however_long_it_is():
    store = ReplyStore(memory_bytes=0)
    for step in range(2):
        store.put(("code", step), output(step))
    assert list(store._newest) == [("code", 1)]
    store.clear()


def test_a_reply_of_several_frames_comes_back_whole():
    store = ReplyStore(memory_bytes=0)
    long = CodeGradient(0, 0, torch.rand(2, PART_BYTES // 4), loss=0.25)
    store.put(("code", 0), long)
    store.put(("code", 1), output(1))
    given = store.get(("code", 0))
    assert given.loss == 0.25
    assert torch.equal(given.gradient, long.gradient)
    store.clear()


@pytest.mark.parametrize("memory_bytes", [0, 2**20])
def test_a_store_that_was_cleared_holds_nothing(memory_bytes):
    store = ReplyStore(memory_bytes)
    for step in range(3):
        store.put(("code", step), output(step))
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
    store, expected = ReplyStore(memory), {}
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
        assert given is None or given.step == step
    store.clear()
