"""Why a peer refuses a message: a code on the wire, an error at both ends.

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
    "unknown-client": RemoteError,  # no client of this name takes part
    "revoked": RemoteError,  # the client's certificate is on the authority's list
    "busy": TransportError,  # too many connections; try again later
    # Between messages.
    "out-of-order": RemoteError,  # the message may not come now
    "not-your-turn": RemoteError,  # another client trains now
    "stale-turn": TransportError,  # the turn was revoked; connect again for another
    "shutting-down": TransportError,  # the server stops and may come back
    "interrupted": TransportError,  # the exchange broke off
    # About one message.
    "malformed": RemoteError,  # the bytes are not a message
    "unknown-message": RemoteError,  # an unknown kind of message, or none
    "too-large": RemoteError,  # the message is longer than its kind allows
    "wrong-shape": RemoteError,  # shape or dtype differs from the contract's
    "not-finite": RemoteError,  # a number is infinite or NaN
    "out-of-range": RemoteError,  # a number is beyond the contract's norm limit
    "bad-seal": RemoteError,  # a hand-off does not open
    "refused": RemoteError,  # any other reason; the text names it
}

_TEXT_LIMIT = 8192


def refusal_of(error: LightSplitError) -> Refusal:
    """Return the refusal that tells a peer about an error its message caused."""
    if isinstance(error, CodecError):
        code = "wrong-shape"
    else:
        code = error.code if isinstance(error, ExchangeError) else "refused"
    return Refusal(code, str(error)[:_TEXT_LIMIT])


def error_of(refusal: Refusal) -> ExchangeError:
    """Return the error to raise when a refusal arrives."""
    known = refusal.code in REFUSALS
    text = refusal.text if known else f"{refusal.code}: {refusal.text}"
    return REFUSALS.get(refusal.code, RemoteError)(text, code=refusal.code)
