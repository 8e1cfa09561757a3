"""Client and Server: a step from either end, with no knowledge of sockets."""

from lightsplit.runtime.averaging import Averaging
from lightsplit.runtime.caching_server import CachingServer
from lightsplit.runtime.client import Client
from lightsplit.runtime.client_model import ClientModel
from lightsplit.runtime.hand_off import HAND_OFFS, HandOff
from lightsplit.runtime.inspector import Inspector
from lightsplit.runtime.joining_server import JoiningServer
from lightsplit.runtime.once_client import OnceClient
from lightsplit.runtime.precision import Precision
from lightsplit.runtime.recipe import Pace, Recipe
from lightsplit.runtime.release_log import ReleaseBudget, ReleaseLog
from lightsplit.runtime.secret import Secret
from lightsplit.runtime.server import Loss, Server
from lightsplit.runtime.side import (
    ClientSide,
    OptimizerFactory,
    ServerSide,
    Side,
    State,
)
from lightsplit.runtime.statistics import begin_with_first_batch
from lightsplit.runtime.turn import BatchSource, TurnReport
from lightsplit.runtime.weight_averaging import (
    CopiesMean,
    WeightAveraging,
    share_numbers,
)

__all__ = [
    "HAND_OFFS",
    "Averaging",
    "BatchSource",
    "CachingServer",
    "Client",
    "ClientModel",
    "ClientSide",
    "CopiesMean",
    "HandOff",
    "Inspector",
    "JoiningServer",
    "Loss",
    "OnceClient",
    "OptimizerFactory",
    "Pace",
    "Precision",
    "Recipe",
    "ReleaseBudget",
    "ReleaseLog",
    "Secret",
    "Server",
    "ServerSide",
    "Side",
    "State",
    "TurnReport",
    "WeightAveraging",
    "begin_with_first_batch",
    "share_numbers",
]
