"""Loops of the user's own: the client's half as a module, and a server without turns.

client:  connect(model, …)       ─► ConnectedModel ─► LoopLine
server:  host(model, …).serve(…) ─► LoopSession ─► LoopServer ─► AccumulatingServer
"""

from lightsplit.loops.connected import ConnectedModel
from lightsplit.loops.connecting import connect
from lightsplit.loops.hosting import Host, host

__all__ = ["ConnectedModel", "Host", "connect", "host"]
