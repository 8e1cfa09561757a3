import threading

import pytest

from lightsplit.deployment.door import STREAMS_PER_NAME, Door, most_streams
from lightsplit.deployment.roster import Roster
from lightsplit.errors import ProtocolError, TransportError
from lightsplit.transports import Peer


def peer(name):
    return Peer(name, lambda: None, lambda: True)


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
        door.enter(one)
    with pytest.raises(TransportError, match="try again") as caught:
        door.enter(peer("alice"))
    assert caught.value.code == "busy"
    for _ in range(STREAMS_PER_NAME):
        door.enter(peer("bob"))
    door.leave(held[0])
    door.enter(peer("alice"))


def test_all_names_together_fit(door):
    assert most_streams(2) > 2 * STREAMS_PER_NAME


def test_streams_without_a_name_are_not_counted(door):
    for _ in range(2 * STREAMS_PER_NAME):
        door.enter(peer(None))
    door.leave(peer(None))


def test_an_open_list_admits_any_name_until_it_is_full():
    roster = Roster(1, threading.RLock())
    door = Door(roster)
    door.enter(peer("anybody"))
    roster.admit("alice")
    door.enter(peer("alice"))
    with pytest.raises(ProtocolError, match="'anybody' is not among"):
        door.enter(peer("anybody"))
