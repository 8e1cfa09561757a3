"""The language of client and server: messages, contract, wire and serialiser."""

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
    Update,
    Updated,
    Welcome,
)
from lightsplit.protocol.frames import (
    REFUSALS,
    Expectation,
    Limits,
    Message,
    Reader,
    frame_bytes,
    from_frames,
    to_frames,
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
from lightsplit.protocol.wire import StepId, Wire

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
    "StepId",
    "TurnDone",
    "Update",
    "Updated",
    "Welcome",
    "Wire",
    "code_bytes",
    "detached",
    "frame_bytes",
    "from_frames",
    "to_frames",
]
