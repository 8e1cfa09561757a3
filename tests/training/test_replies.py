import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.codecs import Code
from lightsplit.protocol import CodeGradient, OutputMessage
from lightsplit.protocol.wire import PART_BYTES, to_frames
from lightsplit.training.replies import ReplyStore


def output(step, values=64):
    return OutputMessage(1, step, Code(torch.full((1, values), float(step))))


def equal(one, other):
    return one.step == other.step and torch.equal(
        one.output.values, other.output.values
    )


def filled(steps, **options):
    store = ReplyStore(**options)
    for step in range(steps):
        store.put(("code", step), output(step))
        store.lay_aside()
    return store


@pytest.mark.parametrize("memory_bytes", [0, 1000, 2**20])
def test_replies_that_were_laid_aside_come_back_the_same(memory_bytes):
    store = filled(10, memory_bytes=memory_bytes)
    assert len(store) == 10
    for step in reversed(range(10)):
        assert equal(store.get(("code", step)), output(step))
    store.clear()


def test_what_memory_cannot_hold_goes_to_a_file():
    lengths = [len(to_frames(output(step))[0]) for step in range(5)]
    store = filled(7, memory_bytes=sum(lengths[:3]))
    assert store._memory.tell() == sum(lengths[:3])
    assert store._file.tell() == sum(lengths[3:])
    assert equal(store.get(("code", 1)), output(1))  # and reading does not disturb
    store.put(("code", 7), output(7))
    store.lay_aside()
    assert all(equal(store.get(("code", n)), output(n)) for n in range(8))
    store.clear()


def test_the_newest_replies_come_back_as_the_very_objects():
    store = filled(8)
    newest = [output(8), output(9)]
    for reply in newest:
        store.put(("code", reply.step), reply)
        store.lay_aside()
    assert all(store.get(("code", reply.step)) is reply for reply in newest)
    assert store.get(("code", 10)) is None


def test_a_reply_of_several_frames_comes_back_whole():
    store = ReplyStore(memory_bytes=0)
    long = CodeGradient(0, 0, torch.rand(2, PART_BYTES // 4), loss=0.25)
    store.put(("code", 0), long)
    for step in (1, 2):
        store.put(("code", step), output(step))
    store.lay_aside()
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


def test_the_next_turn_is_laid_where_the_last_one_lay():
    store = filled(5)
    memory, used = store._memory, store._memory.tell()
    for _ in range(3):
        store.clear()
        for step in range(5):
            store.put(("code", step), output(step))
            store.lay_aside()
        assert store._memory is memory
        assert store._memory.tell() == used


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
            store.lay_aside()
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
