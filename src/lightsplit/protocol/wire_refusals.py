"""Why a peer says no: a code on the wire, an error on either side of it.

the refusing side                                   the refused side
ProtocolError(code) ── refusal_of ──► Refusal ── error_of ──► REFUSALS[code]
"""

from lightsplit.errors import (
    CodecError,
    ContractError,
    ExchangeError,
    LightSplitError,
    RemoteError,
    TransportError,
)
from lightsplit.protocol.control import Refusal

REFUSALS: dict[str, type[ExchangeError]] = {
    # At the door.
    "version": ContractError,  # another version of the protocol
    "contract-mismatch": ContractError,  # a term of the contract differs
    "wrong-fingerprint": ContractError,  # same terms, another projection was drawn
    "unknown-client": RemoteError,  # nobody of this name takes part
    "busy": TransportError,  # too many connections; later, perhaps
    # Between messages.
    "out-of-order": RemoteError,  # not what may come now
    "not-your-turn": RemoteError,  # another client trains now
    "stale-turn": TransportError,  # the turn was revoked; connect again for the next
    "shutting-down": TransportError,  # the server stops; it may come back
    "interrupted": TransportError,  # the exchange broke off
    # About one message.
    "malformed": RemoteError,  # bytes that are no message
    "unknown-message": RemoteError,  # a message of no known kind, or an empty one
    "too-large": RemoteError,  # longer than such a message may be
    "wrong-shape": RemoteError,  # shape or dtype is not the contract's
    "not-finite": RemoteError,  # infinite or NaN
    "bad-seal": RemoteError,  # a hand-off that does not open
    "refused": RemoteError,  # anything else; the text says what
}

_TEXT_LIMIT = 8192


def refusal_of(error: LightSplitError) -> Refusal:
    """Return what to tell the peer about an error that its message caused."""
    if isinstance(error, CodecError):
        code = "wrong-shape"
    else:
        code = error.code if isinstance(error, ExchangeError) else "refused"
    return Refusal(code, str(error)[:_TEXT_LIMIT])


def error_of(refusal: Refusal) -> ExchangeError:
    """Return the error to raise where a refusal arrived."""
    known = refusal.code in REFUSALS
    text = refusal.text if known else f"{refusal.code}: {refusal.text}"
    return REFUSALS.get(refusal.code, RemoteError)(text, code=refusal.code)
