import pytest

from lightsplit.deployment.open_round import HAND_IN, OpenRound
from lightsplit.errors import ProtocolError
from lightsplit.protocol.control import TurnDone
from lightsplit.runs.rounds import Round
from lightsplit.runs.schedule import Turn

KINDS = ("code", "output_gradient", "share")
ROUND = Round(4, Turn(0, 4, 2, 1, ends_round=True, ends_epoch=False), 3, 12)


def opened(owners=(0, 1, 2)):
    return OpenRound(ROUND, KINDS, set(owners), now=100.0)


def close_with(one, owners):
    for owner in owners:
        one.hear(owner, TurnDone(4), 100.5)
    one.close_stage({owner: f"{one.kind} to {owner}" for owner in owners}, now=101.0)


def test_a_stage_is_over_when_all_have_been_heard():
    one = opened()
    for owner in (2, 0):
        one.hear(owner, TurnDone(4), 100.5)
    assert not one.is_complete(now=1000.0, least=3, patience=5)
    assert one.missing == {1}
    one.hear(1, TurnDone(4), 100.5)
    assert one.is_complete(now=100.0, least=3, patience=5)


def test_a_stage_ends_without_those_who_are_late_if_enough_are_there():
    one = opened()
    assert not one.is_complete(now=1000.0, least=0, patience=5)  # nobody is there
    one.hear(2, TurnDone(4), 100.5)
    assert not one.is_complete(now=104.0, least=1, patience=5)
    assert not one.is_complete(now=106.0, least=2, patience=5)
    assert one.is_complete(now=106.0, least=1, patience=5)


def test_whoever_is_late_is_told_that_the_round_went_on():
    one = opened()
    close_with(one, [0, 2])
    with pytest.raises(ProtocolError, match="too late") as error:
        one.check_member(1, "code")
    assert error.value.code == "stale-turn"
    assert one.expected == {0, 2}
    with pytest.raises(ProtocolError, match="expected output_gradient"):
        one.check_member(0, "share")
    one.check_member(0, "output_gradient")


def test_a_second_message_does_not_count_and_a_reply_is_kept():
    one = opened()
    one.hear(0, "first", 101.0)
    one.hear(0, "second", 103.0)
    assert one.heard == {0: "first"}
    assert one.waits(now=104.0) == {0: 3.0}
    close_with(one, [0, 1, 2])
    assert one.reply(1, "code") == "code to 1"
    assert one.reply(1, "share") is None


def test_a_refused_owner_is_out_of_the_round_and_nobody_waits_for_it():
    one = opened()
    close_with(one, [0, 1, 2])
    one.hear(0, TurnDone(4), 100.5)
    one.hear(1, TurnDone(4), 100.5)
    one.refuse(1, ProtocolError("too large"))
    assert one.missing == {2}
    with pytest.raises(ProtocolError, match="too large"):
        one.check_member(1, "output_gradient")


def test_attendance_tells_how_far_everybody_came():
    one = opened()
    for owners in ((0, 1, 2), (0, 2), (0, 2)):
        close_with(one, owners)
    assert one.kind == HAND_IN
    assert one.done_steps(2) == 1
    assert one.done_steps(1) == 0
    one.hear(2, TurnDone(4), 100.5)
    one.end()
    assert one.is_over
    assert one.attendance == ((0, 1, 2), (0, 2), (0, 2), (2,))
