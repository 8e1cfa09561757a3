"""Client and Server: a step from either end, with no knowledge of sockets."""

from lightsplit.runtime.client import BatchSource, Client, Inspector, TurnReport
from lightsplit.runtime.hand_off import HAND_OFFS, HandOff
from lightsplit.runtime.server import Loss, Server
from lightsplit.runtime.side import (
    ClientSide,
    OptimizerFactory,
    ServerSide,
    Side,
    State,
)

__all__ = [
    "HAND_OFFS",
    "BatchSource",
    "Client",
    "ClientSide",
    "HandOff",
    "Inspector",
    "Loss",
    "OptimizerFactory",
    "Server",
    "ServerSide",
    "Side",
    "State",
    "TurnReport",
]
