import pytest
import torch

from lightsplit.codecs import Code
from lightsplit.errors import ProtocolError, RunError
from lightsplit.runtime import code_cache
from lightsplit.runtime.code_cache import CodeCache


def codes(count, start=0.0):
    values = torch.arange(count * 2.0).view(count, 2) + start
    return Code(values, (values.to(torch.int16),))


@pytest.fixture
def cache():
    made = CodeCache()
    made.add(1, 0, codes(3), is_training=True)
    made.add(1, 3, codes(2, start=6.0), is_training=True)
    return made


def test_codes_come_back_by_number_with_their_side(cache):
    got = cache.rows(1, torch.tensor([4, 0]), is_training=True)
    assert got.values.tolist() == [[8, 9], [0, 1]]
    assert got.side[0].tolist() == [[8, 9], [0, 1]]
    assert cache.count(1, is_training=True) == 5
    assert cache.count(1, is_training=False) == cache.count(0, is_training=True) == 0


def test_the_same_code_may_come_again_and_no_other(cache):
    cache.add(1, 0, codes(3), is_training=True)
    assert cache.count(1, is_training=True) == 5
    with pytest.raises(ProtocolError, match="expected each code once, got other codes"):
        cache.add(1, 1, codes(2), is_training=True)


def test_a_gap_is_refused(cache):
    with pytest.raises(ProtocolError, match="train sample 5 of client 1 next"):
        cache.add(1, 6, codes(1), is_training=True)
    with pytest.raises(ProtocolError, match="train sample 5 of client 1 next"):
        cache.add(1, 4, codes(2), is_training=True)


@pytest.mark.parametrize("number", [-1, 5])
def test_a_number_without_a_code_is_refused(cache, number):
    with pytest.raises(ProtocolError, match="released 5 codes of train samples"):
        cache.rows(1, torch.tensor([0, number]), is_training=True)


def test_test_samples_are_limited(cache, monkeypatch):
    monkeypatch.setattr(code_cache, "MOST_TEST_SAMPLES", 3)
    cache.add(0, 0, codes(3), is_training=False)
    with pytest.raises(ProtocolError, match="at most 3 test samples"):
        cache.add(0, 3, codes(1), is_training=False)


def test_a_state_restores_every_code(cache):
    cache.add(0, 0, codes(2), is_training=False)
    again = CodeCache()
    again.load(cache.state())
    assert again.count(0, is_training=False) == 2
    every = torch.arange(5)
    got, expected = (one.rows(1, every, is_training=True) for one in (again, cache))
    assert torch.equal(got.values, expected.values)
    assert torch.equal(got.side[0], expected.side[0])


@pytest.mark.parametrize("name", ["x.train.0", "0.other.0", "0.train.x"])
def test_a_state_of_no_client_is_refused(name):
    with pytest.raises(RunError, match="codes of no client"):
        CodeCache().load({code_cache.PREFIX + name: torch.zeros(1)})
