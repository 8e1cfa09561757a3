import dataclasses
import json

import pytest

from lightsplit.deployment.handshake import check_contract, check_hello, check_ready
from lightsplit.errors import ContractError, ProtocolError
from lightsplit.protocol import PROTOCOL_VERSION
from lightsplit.protocol.control import Hello, Ready
from lightsplit.transports import Peer


def peer(name=None):
    return Peer(name, lambda: None, lambda: True)


@pytest.fixture
def contract(make_contract):
    return make_contract()


def code_of(check, *arguments):
    with pytest.raises(ProtocolError) as caught:
        check(*arguments)
    return caught.value.code


@pytest.mark.parametrize("name", [None, "alice"])
@pytest.mark.parametrize("purpose", ["train", "predict", "loop"])
def test_the_same_contract_under_ones_own_name_is_let_in(name, purpose, contract):
    check_hello(Hello("alice", contract.to_json(), purpose), peer(name), contract)


def test_every_reason_has_its_own_code(contract):
    text = contract.to_json()
    other = dataclasses.replace(contract, batch_size=3).to_json()
    drawn = dataclasses.replace(contract, fingerprint="f").to_json()
    later = json.dumps({**json.loads(text), "version": PROTOCOL_VERSION + 1, "new": 1})
    hellos = {
        Hello("alice", text, "spy"): "unknown-message",
        Hello("bob", text): "unknown-client",
        Hello("alice", other): "contract-mismatch",
        Hello("alice", drawn): "wrong-fingerprint",
        Hello("alice", later): "version",
    }
    for hello, code in hellos.items():
        assert code_of(check_hello, hello, peer("alice"), contract) == code


@pytest.mark.parametrize(
    "text", ["", "null", "[1]", f'{{"version": {PROTOCOL_VERSION}}}', "[" * 10**5]
)
def test_bytes_that_are_not_a_contract_are_a_mismatch(text, contract):
    with pytest.raises(ContractError, match="not a contract"):
        check_contract(contract, text)


def test_a_fingerprint_beside_other_terms_is_a_mismatch_that_names_both(contract):
    theirs = dataclasses.replace(contract, fingerprint="f", seed=4)
    with pytest.raises(
        ContractError, match=r"fingerprint.*seed: client has 4, server has 0"
    ) as e:
        check_contract(contract, theirs.to_json())
    assert e.value.code == "contract-mismatch"


def test_batches_must_be_there_and_stay_the_same():
    check_ready("alice", 0, Ready(2**20))
    check_ready("alice", 5, Ready(5))
    for before, now in ((0, 0), (0, 2**20 + 1), (5, 4)):
        assert code_of(check_ready, "alice", before, Ready(now)) == "contract-mismatch"
