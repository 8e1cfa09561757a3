"""What the operator of a server can see of a run: health, metrics, a live page.

Board          the newest picture of the run, taken by the server's own loop
StatusServer   gives it out over HTTP, on a port of its own
"""

from lightsplit.deployment.status.board import Board
from lightsplit.deployment.status.server import StatusServer

__all__ = ["Board", "StatusServer"]
