"""Messages as bytes: the only serialiser.

    message ── to_frames ──► frame, frame … ── Reader.feed, one by one ──► message

Frames follow proto/lightsplit.proto and go over a gRPC stream as they are. Reading
trusts nothing: every way to fail is a ProtocolError with a code of REFUSALS, and what
bytes claim is checked before memory is taken for it.
"""

from lightsplit.protocol.wire_limits import Claim, Expectation, Limits
from lightsplit.protocol.wire_reading import Reader, from_frames
from lightsplit.protocol.wire_refusals import REFUSALS, error_of, refusal_of
from lightsplit.protocol.wire_schema import Message
from lightsplit.protocol.wire_writing import (
    PART_BYTES,
    frame_bytes,
    to_frames,
    to_pieces,
)

__all__ = [
    "PART_BYTES",
    "REFUSALS",
    "Claim",
    "Expectation",
    "Limits",
    "Message",
    "Reader",
    "error_of",
    "frame_bytes",
    "from_frames",
    "refusal_of",
    "to_frames",
    "to_pieces",
]
