"""The phases of a run, and the messages that a client's step has in each.

    codes in every step    train
    codes sent once        local ──► release ──► train

local     head, encoder and one linear layer train at the client; nothing is sent
release   the head is frozen; the code of every sample is sent, each once
train     the server trains; where codes were released, steps name samples
"""

from lightsplit.protocol.contract import Contract
from lightsplit.protocol.messages import (
    CodeMessage,
    OutputGradient,
    Recall,
    Release,
    Share,
)

LOCAL, RELEASE, TRAIN = "local", "release", "train"
PHASES = (LOCAL, RELEASE, TRAIN)


def step_kinds(contract: Contract, phase: str) -> tuple[str, ...]:
    """Return the kinds of message that a client sends in a step, in their order."""
    if contract.is_silent or phase == LOCAL:
        return ()
    if phase == RELEASE:
        return (Release.kind,)
    first = Recall.kind if contract.sends_once else CodeMessage.kind
    if contract.averages_side and contract.is_parallel:
        return (first, OutputGradient.kind, Share.kind)
    if contract.topology == "u" and contract.gradients == "all":
        return (first, OutputGradient.kind)
    return (first,)
