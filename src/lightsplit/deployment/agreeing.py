"""A client's end of the agreement on a run's key."""

import hashlib
import secrets
from collections.abc import Callable
from pathlib import Path

from lightsplit.deployment.agreement_session import AGREED
from lightsplit.deployment.endpoint import Endpoint, open_line
from lightsplit.deployment.join_options import log_away
from lightsplit.deployment.pauses import Pauses
from lightsplit.deployment.reconnecting import Line
from lightsplit.errors import ConfigError, ProtocolError, TransportError
from lightsplit.protocol import Contract
from lightsplit.protocol.control import Finished, Grant, Heard, Hello, TurnDone, Welcome
from lightsplit.results import atomic
from lightsplit.transports.credentials import TlsFiles
from lightsplit.transports.key_agreement import (
    AgreedKey,
    Agreement,
    own_ephemeral,
    split_posts,
)
from lightsplit.transports.sealing import KEY_BYTES, SealingKey


def agree_on_key(
    contract: Contract,
    endpoint: Endpoint,
    folder: Path,
    *,
    name: str,
    give_up_seconds: float = 600.0,
    away: Callable[[TransportError], None] = log_away,
) -> AgreedKey:
    """Return the key of the run that the server names; agree on it if it is new.

    Waits until every client has come.

    Args:
        contract: as this client understands it.
        endpoint: of the server; it needs certificates.
        folder: of the client's state, which keeps the key.
        name: of the client, as in its certificate.
        give_up_seconds: how long to try to reach the server.
        away: called each time the server could not be reached.
    """
    if endpoint.tls is None:
        raise ConfigError("clients need certificates to agree on a key; or give --key")
    pauses = Pauses(give_up_seconds)
    while True:
        pauses.before_try()
        line = open_line(endpoint, None)
        try:
            welcome = _introduce(line, Hello(name, contract.to_json(), "agree"))
            pauses.note_open()
            return _agree(line, contract, endpoint.tls, folder, welcome.run)
        except TransportError as error:
            if pauses.is_time_up:
                raise
            away(error)
        finally:
            line.close()


def key_file(folder: Path, run: str) -> Path:
    """Return the file of a run's key; the server chose the run's name."""
    return folder / f"run-{hashlib.sha256(run.encode()).hexdigest()[:16]}.key"


def _introduce(line: Line, hello: Hello) -> Welcome:
    welcome = line.call(hello)
    if not isinstance(welcome, Welcome):
        raise ProtocolError(f"expected a welcome, got {type(welcome).__name__}")
    return welcome


def _agree(
    line: Line, contract: Contract, tls: TlsFiles, folder: Path, run: str
) -> AgreedKey:
    file = key_file(folder, run)
    if file.exists():
        return AgreedKey(SealingKey.load(file), run, (), file)
    draft = file.with_suffix(".draft")
    agreement = Agreement(tls, own_ephemeral(draft), run=run, contract=contract.digest)
    offered = file.with_suffix(".offer")
    own = _own_offer(agreement, offered)
    secret, names = _exchange(line, agreement, own, contract.clients)
    key = SealingKey(secret)
    key.save(file)
    offered.unlink(missing_ok=True)
    draft.unlink(missing_ok=True)  # from now on nothing here opens the agreement
    line.finish(Heard())
    return AgreedKey(key, run, names, file)


def _own_offer(agreement: Agreement, file: Path) -> bytes:
    """Return this client's offer, signed only once: the others may already have it.

    Every signature is different, and an offer that all clients have cannot be replaced.
    So a client that was killed comes back with exactly the same offer.
    """
    if file.exists():
        return file.read_bytes()
    offer = agreement.offer()
    atomic.write_bytes(file, offer, is_secret=True)
    return offer


def _exchange(
    line: Line, agreement: Agreement, own: bytes, clients: int
) -> tuple[bytes, tuple[str, ...]]:
    """Return the secret that all clients share now, and their names."""
    grant = line.call(TurnDone(0, own))
    if not isinstance(grant, Grant):
        raise ProtocolError(f"expected all offers, got {type(grant).__name__}")
    posts = split_posts(grant.side, clients)
    offers = agreement.read(posts, own)
    wraps = b""
    if posts[0] == own:  # the first client draws the key
        wraps = agreement.wrap(secrets.token_bytes(KEY_BYTES), offers, posts)
    end = line.call(TurnDone(1, wraps))
    if not isinstance(end, Finished) or end.reason != AGREED:
        raise ProtocolError(f"expected the run's key, got {type(end).__name__}")
    wrapped = split_posts(end.side, clients)[0]
    secret = agreement.unwrap(wrapped, offers, posts, own)
    return secret, tuple(offer.name for offer in offers)
