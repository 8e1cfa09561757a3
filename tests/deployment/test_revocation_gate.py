"""A revoked client is kept out, and put out."""

import pytest

from lightsplit.deployment.revocation_gate import RevocationGate
from lightsplit.errors import ProtocolError
from lightsplit.transports import Peer


class Listed(set):
    """A list that says it changed."""

    def refresh(self):
        return True


def make_peer(serial, ended):
    return Peer("alice", lambda: ended.append(serial), lambda: True, serial=serial)


def test_a_revoked_client_is_refused_by_a_reason_of_its_own():
    gate = RevocationGate(Listed({7}), lambda peer: peer)
    with pytest.raises(ProtocolError, match="'alice' with serial 7 is revoked") as told:
        gate.open(make_peer(7, []))
    assert told.value.code == "revoked"
    other = make_peer(8, [])
    assert gate.open(other) is other


def test_the_open_stream_of_a_revoked_client_is_closed():
    ended, revoked = [], Listed()
    gate = RevocationGate(revoked, lambda peer: peer)
    for serial in (7, 8):
        gate.open(make_peer(serial, ended))
    gate.sweep()
    assert ended == []
    revoked.add(7)
    gate.sweep()
    assert ended == [7]


def test_a_client_that_left_is_forgotten():
    ended, gone, revoked = [], [], Listed()
    gate = RevocationGate(revoked, lambda peer: peer)
    peer = Peer(
        "alice", lambda: ended.append(7), lambda: True, when_gone=gone.append, serial=7
    )
    gate.open(peer)
    gone[0]()
    revoked.add(7)
    gate.sweep()
    assert ended == []
