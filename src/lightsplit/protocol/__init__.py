"""Messages and the contract: what the two sides say to each other."""

from lightsplit.protocol.contract import PROTOCOL_VERSION, Contract
from lightsplit.protocol.messages import (
    STEP_KINDS,
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
    Reply,
    Request,
    code_bytes,
    detached,
)

__all__ = [
    "PROTOCOL_VERSION",
    "STEP_KINDS",
    "CodeGradient",
    "CodeMessage",
    "Contract",
    "OutputGradient",
    "OutputMessage",
    "Reply",
    "Request",
    "code_bytes",
    "detached",
]
