"""Messages as bytes: the only serialiser.

    message ── to_frames ──► frame, frame … ── Reader.feed, one by one ──► message

Frames follow proto/lightsplit.proto and go over a gRPC stream as they are. ``writing``
and ``reading`` are the two directions; ``parts`` cuts and joins long messages. Reading
trusts nothing: every failure is a ProtocolError with a code of REFUSALS, and a claim is
checked before memory is taken for it.
"""

from lightsplit.protocol.frames.limits import Claim, Expectation, Limits
from lightsplit.protocol.frames.parts import PART_BYTES
from lightsplit.protocol.frames.reading import Reader, from_frames
from lightsplit.protocol.frames.refusals import REFUSALS, error_of, refusal_of
from lightsplit.protocol.frames.schema import Message
from lightsplit.protocol.frames.writing import frame_bytes, to_frames

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
]
