"""Messages, the contract and the serialiser: what the two sides say to each other."""

from lightsplit.formats import STEP_KINDS
from lightsplit.protocol.contract import PROTOCOL_VERSION, Contract
from lightsplit.protocol.control import (
    Control,
    Finished,
    Grant,
    Heard,
    Hello,
    Ready,
    Refusal,
    TurnDone,
    Welcome,
)
from lightsplit.protocol.messages import (
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
    Reply,
    Request,
    code_bytes,
    detached,
)
from lightsplit.protocol.wire import (
    REFUSALS,
    Expectation,
    Limits,
    Message,
    Reader,
    frame_bytes,
    from_frames,
    to_frames,
    to_pieces,
)

__all__ = [
    "PROTOCOL_VERSION",
    "REFUSALS",
    "STEP_KINDS",
    "CodeGradient",
    "CodeMessage",
    "Contract",
    "Control",
    "Expectation",
    "Finished",
    "Grant",
    "Heard",
    "Hello",
    "Limits",
    "Message",
    "OutputGradient",
    "OutputMessage",
    "Reader",
    "Ready",
    "Refusal",
    "Reply",
    "Request",
    "TurnDone",
    "Welcome",
    "code_bytes",
    "detached",
    "frame_bytes",
    "from_frames",
    "to_frames",
    "to_pieces",
]
