import threading

import pytest

from lightsplit.deployment.door import STREAMS_PER_NAME, Door, most_streams
from lightsplit.deployment.roster import Roster
from lightsplit.errors import ProtocolError, TransportError
from lightsplit.transports import Peer


def peer(name, cancel=lambda: None):
    return Peer(name, cancel, lambda: True)


def enter_and_speak(door, one):
    door.enter(one)
    door.hear(one)


@pytest.fixture
def door():
    return Door(Roster(2, threading.RLock(), ["alice", "bob"]))


def test_a_name_off_the_list_is_refused_before_its_first_message(door):
    with pytest.raises(ProtocolError, match="'mallory' is not among") as caught:
        door.enter(peer("mallory"))
    assert caught.value.code == "unknown-client"


def test_a_name_has_room_for_a_few_streams_and_takes_none_of_the_others(door):
    held = [peer("alice") for _ in range(STREAMS_PER_NAME)]
    for one in held:
        enter_and_speak(door, one)
    with pytest.raises(TransportError, match="try again") as caught:
        door.enter(peer("alice"))
    assert caught.value.code == "busy"
    for _ in range(STREAMS_PER_NAME):
        enter_and_speak(door, peer("bob"))
    door.leave(held[0])
    door.enter(peer("alice"))


def test_the_oldest_silent_stream_of_a_name_gives_way_to_a_newer_one(door):
    cut = []
    speaker = peer("alice", lambda: cut.append("the speaker"))
    enter_and_speak(door, speaker)
    silent = [
        peer("alice", lambda number=number: cut.append(number))
        for number in range(STREAMS_PER_NAME + 1)
    ]
    for one in silent:
        door.enter(one)
    assert cut == [0, 1]
    for gone in silent[:2]:
        door.leave(gone)  # their threads end later, and count no second time
    door.enter(peer("alice"))
    assert cut == [0, 1, 2]


def test_a_stream_that_speaks_after_it_gave_way_is_told_to_try_again(door):
    late = peer("alice")
    door.enter(late)
    for _ in range(STREAMS_PER_NAME):
        door.enter(peer("alice"))
    with pytest.raises(TransportError, match="try again") as caught:
        door.hear(late)
    assert caught.value.code == "busy"


def test_all_names_together_fit(door):
    assert most_streams(2) > 2 * STREAMS_PER_NAME


def test_streams_without_a_name_are_not_counted(door):
    for _ in range(2 * STREAMS_PER_NAME):
        enter_and_speak(door, peer(None))
    door.leave(peer(None))


def test_an_open_list_admits_any_name_until_it_is_full():
    roster = Roster(1, threading.RLock())
    door = Door(roster)
    door.enter(peer("anybody"))
    roster.admit("alice")
    door.enter(peer("alice"))
    with pytest.raises(ProtocolError, match="'anybody' is not among"):
        door.enter(peer("anybody"))
