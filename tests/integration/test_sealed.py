"""The server carries the shared head and can neither read nor change nor swap it."""

import dataclasses
import random

import pytest
from lab.processes import wait_until
from lab.runs import Network, assert_same_weights, reference

from lightsplit.deployment.coordinator import Coordinator
from lightsplit.errors import ConfigError, SealError
from lightsplit.protocol.control import Finished, Grant, TurnDone
from lightsplit.results import tensors
from lightsplit.transports.sealing import SealingKey


@pytest.fixture
def malicious(monkeypatch):
    """Return what puts a server in the coordinator's place that alters its answers."""
    honest = Coordinator.session

    def put(alter, seen=lambda message: None):
        def session(self, peer):
            return Altered(honest(self, peer), alter, seen)

        monkeypatch.setattr(Coordinator, "session", session)

    return put


class Altered:
    """A session whose replies are altered."""

    def __init__(self, session, alter, seen):
        self._session = session
        self._alter = alter
        self._seen = seen
        self.replied, self.close = session.replied, session.close

    def handle(self, message):
        self._seen(message)
        reply = self._session.handle(message)
        if reply is None:
            return None
        self._seen(reply)
        return self._alter(reply)


class Tampering:
    """Gives the side of one turn's grant, or of the end, to ``change`` first."""

    def __init__(self, change, *, turn=4, kind=Grant):
        self.sides = {}
        self._change = change
        self._turn = turn
        self._kind = kind

    def __call__(self, message):
        if isinstance(message, Grant):
            self.sides[message.turn] = message.side
        if not isinstance(message, self._kind) or message.turn < self._turn:
            return message
        side = self._change(message.side, self.sides)
        return dataclasses.replace(message, side=side)


def flipped(side, _sides):
    changed = bytearray(side)
    chance = random.Random(len(side))  # noqa: S311
    changed[chance.randrange(len(side))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def of_another_run(_side, _sides):
    return STRANGER.seal(b"x" * 1000, run="another", turn=3, contract="c")


STRANGER = SealingKey.generate()
CHANGES = {
    "altered": flipped,
    "truncated": lambda side, _sides: side[:-1],
    "extended": lambda side, _sides: side + b"\0",
    "replayed": lambda _side, sides: sides[2],
    "swapped": of_another_run,
    "emptied": lambda _side, _sides: b"",
    "in plain text": lambda _side, _sides: tensors.to_bytes({}),
}


def error_of(network):
    """Run until a client has refused; return its error."""
    network.join_all(give_up_seconds=0.2)
    errors = network.errors
    return wait_until(
        lambda: next((e for e in errors.values() if isinstance(e, SealError)), None),
        "a refusal",
    )


@pytest.mark.parametrize("change", CHANGES)
def test_a_hand_off_that_was_tampered_with_is_refused(change, malicious, tmp_path):
    malicious(Tampering(CHANGES[change]))
    with Network(tmp_path, epochs=1) as network:
        error = error_of(network)
    assert "hand-off" in str(error)
    assert network.coordinator.progress.turns == 4  # it went no further


@pytest.mark.parametrize("change", ["altered", "replayed", "emptied"])
def test_the_last_side_is_checked_too(change, malicious, tmp_path):
    malicious(Tampering(CHANGES[change], kind=Finished))
    with Network(tmp_path, epochs=1) as network:
        error_of(network)


def test_a_turn_that_is_called_the_first_one_again_brings_no_side_with_it(
    malicious, tmp_path
):
    """An empty side is believed at turn 0 alone, where nothing was trained yet."""
    malicious(Tampering(lambda _side, _sides: b"", turn=1))
    with Network(tmp_path, epochs=1) as network:
        error_of(network)
    assert network.coordinator.progress.turns == 1


def test_the_server_sees_and_stores_nothing_of_the_head(malicious, tmp_path):
    seen = []
    malicious(lambda message: message, seen.append)
    with Network(tmp_path, plan={"checkpoint_every": 1}) as network:
        network.join_all()
        got = network.finish()
    assert_same_weights(got, reference())
    sides = {m.side for m in seen if isinstance(m, Grant | TurnDone | Finished)}
    stored = [
        p.read_bytes() for p in (tmp_path / "checkpoint").rglob("*") if p.is_file()
    ]
    state = network.side("alice").state()
    secrets = [
        tensors.to_bytes({"x": t})[-64:] for t in state.values() if t.nbytes > 64
    ]
    assert len(secrets) > 5
    for content in (*sides, *stored):
        assert not any(secret in content for secret in secrets)
    last = network.ends["alice"]
    opened = network.key.open(
        last.side,
        run=network.coordinator.run_name,
        turn=last.turn,
        contract=network.contract.digest,
    )
    assert all(secret in opened for secret in secrets)  # the search does find them


def test_another_key_is_refused(tmp_path):
    with Network(tmp_path, epochs=1) as network:
        network.join("alice", give_up_seconds=0.2)
        network.join("bob", key=STRANGER, give_up_seconds=0.2)
        network.join("carol", give_up_seconds=0.2)
        wait_until(lambda: "bob" in network.errors, "a refusal")
    assert isinstance(network.errors["bob"], SealError)
    assert STRANGER.fingerprint in str(network.errors["bob"])


def test_a_shared_head_without_a_key_is_refused_before_anything_is_sent(tmp_path):
    with Network(tmp_path) as network:
        network.join("alice", key=None)
        wait_until(lambda: "alice" in network.errors, "a refusal")
    assert isinstance(network.errors["alice"], ConfigError)
    assert network.coordinator.members[0].batches == 0
