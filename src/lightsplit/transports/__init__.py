"""Ways for a message to reach the server, and what may stand in between."""

from lightsplit.transports.metering import KINDS, ByteMeter
from lightsplit.transports.middleware import Mod, Send, through

__all__ = ["KINDS", "ByteMeter", "Mod", "Send", "through"]
