import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightsplit.backdoors import draw_malicious
from lightsplit.errors import ConfigError


@given(share=st.floats(0.01, 0.99), clients=st.integers(1, 50), seed=st.integers(0, 99))
def test_a_share_is_rounded_and_at_least_one(share, clients, seed):
    drawn = draw_malicious(share, clients=clients, seed=seed)
    assert len(set(drawn)) == max(1, round(share * clients))
    assert all(0 <= client < clients for client in drawn)


@given(fewer=st.integers(1, 5), more=st.integers(5, 10), seed=st.integers(0, 99))
def test_fewer_malicious_clients_are_among_the_more(fewer, more, seed):
    small = draw_malicious(fewer, clients=10, seed=seed)
    assert set(small) <= set(draw_malicious(more, clients=10, seed=seed))


def test_seeds_draw_different_clients():
    drawn = {draw_malicious(1, clients=10, seed=seed) for seed in range(20)}
    assert len(drawn) > 3


def test_a_trusted_client_is_never_drawn():
    assert 4 not in draw_malicious(9, clients=10, spared=4)


def test_named_clients_are_those_in_order():
    assert draw_malicious("4, 0", clients=5) == (0, 4)


def test_no_client_is_malicious_if_none_is_asked_for():
    assert draw_malicious(0, clients=5) == ()


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (6, "whole number up to 5, got 6"),
        (1.5, "whole number up to 5, got 1.5"),
        ("5", "from 0 to 4, got '5'"),
        ("first", "a list such as 0,4, got 'first'"),
        ("1,,2", "a list such as 0,4"),
    ],
)
def test_clients_that_cannot_be_are_refused(wanted, reason):
    with pytest.raises(ConfigError, match=reason):
        draw_malicious(wanted, clients=5)
