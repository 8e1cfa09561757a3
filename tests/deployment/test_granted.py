import pytest

from lightsplit.deployment.granted import check_grant
from lightsplit.errors import ProtocolError
from lightsplit.protocol.control import Grant


@pytest.fixture
def check(make_contract):
    def check(grant, *, batches=4, steps=None, **terms):
        known = {"turn_steps": 2, "heads": "private"}
        contract = make_contract(**{**known, **terms})
        check_grant(grant, contract, batches=batches, steps=steps)

    return check


def test_honest_turns_are_accepted(check):
    check(Grant(0, 2, 0))
    check(Grant(9, 0, 6, evaluate=True), steps=6)
    check(Grant(9, 2, 4, done=2, oldest_step=4), steps=6)
    check(Grant(9, 4, 4), turn_steps=0)
    check(Grant(9, 2, 4, side=b"x"), heads="shared")


@pytest.mark.parametrize(
    ("grant", "text"),
    [
        (Grant(1, 3, 0), "at most 2 steps, got 3"),
        (Grant(1, 2**62, 0), "at most 2 steps"),
        (Grant(1, 1, 0, done=2), "at most 1 steps done"),
        (Grant(1, 1, 0, oldest_step=2**62), "an oldest step up to its first step 0"),
        (Grant(1, 1, 0, oldest_turn=2), "an oldest round up to 1, got 2"),
        (Grant(1, 1, 7), "a first step up to 6, got 7"),
        (Grant(1, 1, 0, side=b"x"), "no side, got 1 bytes"),
    ],
)
def test_a_turn_that_cannot_be_is_refused(check, grant, text):
    with pytest.raises(ProtocolError, match=text):
        check(grant, steps=6)


def test_a_whole_epoch_is_the_clients_own(check):
    with pytest.raises(ProtocolError, match="at most 4 steps, got 5"):
        check(Grant(1, 5, 0), turn_steps=0)


def test_phases_are_those_of_codes_that_are_sent_once(check):
    once = {"release": "once"}
    check(Grant(1, 2, 0, phase="local"), **once)
    check(Grant(1, 4, 0, phase="release"), **once)
    with pytest.raises(ProtocolError, match="at most 4 steps, got 5"):
        check(Grant(1, 5, 0, phase="release"), **once)
    with pytest.raises(ProtocolError, match="phase train, got 'release'"):
        check(Grant(1, 2, 0, phase="release"))
    with pytest.raises(ProtocolError, match="phase local or release or train, got ''"):
        check(Grant(1, 2, 0, phase=""), **once)
