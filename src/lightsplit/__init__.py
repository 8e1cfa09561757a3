"""LightSplit: one network trained between many data owners and a server.

Example:
    >>> import torch, lightsplit
    >>> from functools import partial
    >>> network = torch.nn.Sequential(
    ...     torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)
    ... )
    >>> parts = lightsplit.split(network, head_until="0", tail_from="2")
    >>> codec = lightsplit.make_codec("lightsplit-f", shape=(6,), ratio=2)
    >>> sgd = partial(torch.optim.SGD, lr=0.1)
    >>> server = lightsplit.Server(lightsplit.ServerSide(parts.backbone, codec, sgd))

    The client's half is a module, for a loop of your own:

    >>> side = lightsplit.ClientSide(parts.head, parts.tail, codec)
    >>> model = lightsplit.ClientModel(side, server.handle)
    >>> optimizer = sgd(model.parameters())
    >>> inputs, labels = torch.rand(4, 8), torch.tensor([0, 1, 2, 0])
    >>> loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    >>> loss.backward()
    >>> optimizer.step()

    A client with an optimizer and objectives of its own takes whole steps:

    >>> compaction = lightsplit.WeightedObjective(lightsplit.make_objective("wcc"), 0.1)
    >>> side = lightsplit.ClientSide(
    ...     parts.head, parts.tail, codec, sgd, objectives=[compaction]
    ... )
    >>> client = lightsplit.Client(side, server.handle)
    >>> loss = client.step(inputs, labels)
    >>> client.predict(inputs).shape
    torch.Size([4, 3])
"""

from lightsplit.codecs import CODECS, Codec
from lightsplit.errors import LightSplitError
from lightsplit.formats import WireFormats
from lightsplit.loops import ConnectedModel, Host, connect, host
from lightsplit.objectives import (
    OBJECTIVES,
    Objective,
    WeightedObjective,
    within_class_compaction,
)
from lightsplit.protocol import Wire
from lightsplit.runs import Callback, RunStart, Schedule, evaluate, scalars
from lightsplit.runtime import (
    Client,
    ClientModel,
    ClientSide,
    Secret,
    Server,
    ServerSide,
)
from lightsplit.simulation import Trainer, verify
from lightsplit.splitting import (
    SplitModel,
    empty_weights,
    legal_cuts,
    load_part,
    merge,
    split,
)
from lightsplit.tasks import Task
from lightsplit.transports import ByteMeter, through

make_codec = CODECS.create
make_objective = OBJECTIVES.create

__all__ = [
    "ByteMeter",
    "Callback",
    "Client",
    "ClientModel",
    "ClientSide",
    "Codec",
    "ConnectedModel",
    "Host",
    "LightSplitError",
    "Objective",
    "RunStart",
    "Schedule",
    "Secret",
    "Server",
    "ServerSide",
    "SplitModel",
    "Task",
    "Trainer",
    "WeightedObjective",
    "Wire",
    "WireFormats",
    "connect",
    "empty_weights",
    "evaluate",
    "host",
    "legal_cuts",
    "load_part",
    "make_codec",
    "make_objective",
    "merge",
    "scalars",
    "split",
    "through",
    "verify",
    "within_class_compaction",
]
