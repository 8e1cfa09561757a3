"""Transports of messages to the server, and mods in between.

gRPC and cryptography are imported where they are used, not here.
"""

from lightsplit.transports.metering import KINDS, ByteMeter
from lightsplit.transports.middleware import Mod, Send, through
from lightsplit.transports.peers import OpenSession, Peer, Session
from lightsplit.transports.recording import Recorder
from lightsplit.transports.tape import Tape

__all__ = [
    "KINDS",
    "ByteMeter",
    "Mod",
    "OpenSession",
    "Peer",
    "Recorder",
    "Send",
    "Session",
    "Tape",
    "through",
]
