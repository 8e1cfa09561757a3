import threading

import pytest

from lightsplit.deployment.roster import Roster
from lightsplit.errors import ConfigError, ProtocolError, RunError


def make(size=2, names=None):
    return Roster(size, threading.RLock(), names)


def test_a_list_of_names_gives_the_order_of_turns():
    members = make(names=["bob", "alice"])
    assert [(m.name, m.index) for m in members] == [("bob", 0), ("alice", 1)]
    assert members.admit("alice") is members[1]
    assert members.find("bob") is members[0]


def test_without_a_list_whoever_comes_first_gets_a_seat():
    members = make()
    assert [members.admit(name).index for name in ("x", "y", "x")] == [0, 1, 0]
    with pytest.raises(ProtocolError, match="'z' is not among the 2 clients: x, y"):
        members.admit("z")


@pytest.mark.parametrize("is_open", [True, False])
def test_to_be_found_is_not_to_get_a_seat(is_open):
    members = make(names=None if is_open else ["alice", "bob"])
    with pytest.raises(ProtocolError) as caught:
        members.find("mallory")
    assert caught.value.code == "unknown-client"
    assert len(list(members)) == (0 if is_open else 2)


@pytest.mark.parametrize("name", ["", "a b", "[red]x[/]", "x" * 65, "server", "../x"])
def test_a_name_that_no_certificate_may_have_gets_no_seat(name):
    members = make()
    with pytest.raises(ProtocolError) as caught:
        members.admit(name)
    assert caught.value.code == "unknown-client"
    assert list(members) == []


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"], ["a", "a"], []])
def test_a_list_must_have_as_many_names_as_there_are_clients(names):
    with pytest.raises(ConfigError, match="expected 2 different names"):
        make(names=names)


def test_all_are_ready_when_each_has_said_its_batches():
    members = make()
    members.admit("a").batches = 3
    assert not members.are_ready
    members.admit("b")
    assert not members.are_ready
    members[1].batches = 1
    assert members.are_ready


def test_a_checkpoint_brings_everyone_back_to_their_place():
    members = make()
    for name in ("a", "b"):
        members.admit(name).batches = 4
        members.find(name).meter.add("code", 7)
    for again in (make(), make(names=["a", "b"])):
        again.restore(members.to_list())
        assert again.to_list() == members.to_list()
        assert again.are_ready
        assert again.bytes_by_kind()["total"] == 14


def test_another_order_of_names_is_not_the_same_run():
    saved = make(names=["a", "b"]).to_list()
    with pytest.raises(RunError, match="began the run, a, b, in this order; got b, a"):
        make(names=["b", "a"]).restore(saved)
