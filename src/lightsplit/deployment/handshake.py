"""The hand-shake: a client needs the right name, a known purpose, the same contract.

Each refusal has a code of its own and a text with both values.
"""

import json
from dataclasses import replace
from typing import TypeVar

from lightsplit.errors import ContractError, ProtocolError
from lightsplit.protocol import Contract
from lightsplit.protocol.control import Hello, Ready
from lightsplit.transports import Peer

M = TypeVar("M")
PURPOSES = ("train", "predict", "agree", "loop")
MOST_BATCHES = 2**20  # the server holds the schedule of an epoch in memory


def expect(kind: type[M], message: object) -> M:
    """Return ``message`` if it is of the kind that comes next; raise otherwise."""
    if not isinstance(message, kind):
        raise ProtocolError(
            f"expected {kind.__name__}, got {type(message).__name__}",
            code="out-of-order",
        )
    return message


def check_hello(hello: Hello, peer: Peer, contract: Contract) -> None:
    """Raise unless ``peer`` has the name that it gives and wants the same run."""
    if hello.purpose not in PURPOSES:
        raise ProtocolError(
            f"expected purpose {' or '.join(PURPOSES)}, got {hello.purpose!r}",
            code="unknown-message",
        )
    if peer.name is not None and hello.name != peer.name:
        raise ProtocolError(
            f"the certificate names {peer.name!r}, the client {hello.name!r}",
            code="unknown-client",
        )
    check_contract(contract, hello.contract)


def check_contract(mine: Contract, text: str) -> None:
    """Raise unless ``text`` is the contract ``mine``."""
    version = _version(text)
    if version not in (None, mine.version):
        raise ContractError(
            f"protocol version: client has {version!r}, server has {mine.version!r}",
            code="version",
        )
    theirs = Contract.from_json(text)
    try:
        mine.check_same(theirs)
    except RecursionError as error:
        raise ContractError("the contract is nested too deeply") from error
    except ContractError as error:
        drawn = replace(
            theirs,
            fingerprint=mine.fingerprint,
            output_fingerprint=mine.output_fingerprint,
        )
        if drawn != mine:
            raise
        raise ContractError(str(error), code="wrong-fingerprint") from error


def check_ready(name: str, before: int, ready: Ready) -> None:
    """Raise unless a client has batches, as many as ``before`` if that is not 0."""
    now = ready.batches
    if not 1 <= now <= MOST_BATCHES:
        raise ProtocolError(
            f"{name}: expected 1 to {MOST_BATCHES} batches per epoch, got {now}",
            code="contract-mismatch",
        )
    if before not in (0, now):
        raise ProtocolError(
            f"{name} had {before} batches per epoch, now {now}",
            code="contract-mismatch",
        )


def _version(text: str) -> object:
    """Return the version in the text of a contract, even if the rest is damaged."""
    try:
        terms = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return terms.get("version") if isinstance(terms, dict) else None
