"""Posts stand once everybody has posted."""

import pytest

from lightsplit.deployment.key_board import KeyBoard
from lightsplit.errors import ProtocolError
from lightsplit.transports.key_agreement import split_posts


@pytest.fixture
def board():
    return KeyBoard(2)


def test_posts_are_passed_on_in_the_order_of_the_clients(board):
    board.post(0, 1, b"bob")
    assert not board.is_complete(0)
    board.post(0, 0, b"alice")
    assert board.is_complete(0)
    assert split_posts(board.joined(0), 2) == [b"alice", b"bob"]


def test_a_post_may_change_until_all_have_posted(board):
    board.post(0, 1, b"first")
    board.post(0, 1, b"second")
    board.post(0, 0, b"alice")
    assert split_posts(board.joined(0), 2) == [b"alice", b"second"]


def test_an_offer_that_others_have_seen_stands(board):
    board.post(0, 0, b"alice")
    board.post(0, 1, b"bob")
    board.post(0, 1, b"bob")  # a client that was started again, from its folder
    with pytest.raises(ProtocolError, match="agreed on a key already"):
        board.post(0, 1, b"another")


def test_of_two_keys_the_first_stands(board):
    for client in (0, 1):
        board.post(0, client, b"offer")
    board.post(1, 0, b"key")
    board.post(1, 1, b"")
    board.post(1, 0, b"another key")
    assert split_posts(board.joined(1), 2) == [b"key", b""]


def test_the_second_round_comes_after_the_first(board):
    board.post(0, 0, b"alice")
    with pytest.raises(ProtocolError, match="early"):
        board.post(1, 0, b"key")
