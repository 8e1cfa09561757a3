import time

from lightsplit.training.silence import Silence
from lightsplit.transports import Peer


def make_peer():
    return Peer(None, lambda: None, lambda: True)


def echo(_peer, requests):
    yield from requests


def test_it_is_the_clients_move_until_it_has_spoken():
    silence, peer, moves = Silence(), make_peer(), []

    def talk(_peer, requests):
        moves.append(silence.is_waited_for(peer))
        for message in requests:
            moves.append(silence.is_waited_for(peer))
            yield message

    replies = silence.timed(talk, peer, iter("ab"))
    for _ in replies:
        moves.append(silence.is_waited_for(peer))
    assert moves == [True, False, True, False, True]
    assert not silence.is_waited_for(peer)


def test_a_session_that_is_dropped_is_forgotten():
    silence, peer, ended = Silence(), make_peer(), []

    def talk(_peer, requests):
        try:
            yield from requests
        finally:
            ended.append(True)

    replies = silence.timed(talk, peer, iter("ab"))
    next(replies)
    replies.close()
    assert ended == [True]
    assert silence.longer_than(0) == []


def test_only_the_silent_ones_are_named():
    silence, quiet, busy = Silence(), make_peer(), make_peer()
    waiting = silence.timed(echo, quiet, iter("ab"))
    next(waiting)
    began = time.monotonic()
    while time.monotonic() - began < 0.02:
        pass
    later = silence.timed(echo, busy, iter("ab"))
    next(later)
    assert silence.longer_than(0.02) == [quiet]
    assert silence.longer_than(60) == []
