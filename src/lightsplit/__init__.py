"""LightSplit: one network trained between many data owners and a server.

Example:
    >>> import torch, lightsplit
    >>> from functools import partial
    >>> model = torch.nn.Sequential(
    ...     torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)
    ... )
    >>> parts = lightsplit.split(model, head_until="0", tail_from="2")
    >>> codec = lightsplit.make_codec("lightsplit-f", shape=(6,), ratio=2)
    >>> sgd = partial(torch.optim.SGD, lr=0.1)
    >>> server = lightsplit.Server(lightsplit.ServerSide(parts.backbone, codec, sgd))
    >>> side = lightsplit.ClientSide(parts.head, parts.tail, codec, sgd)
    >>> client = lightsplit.Client(side, server.handle)
    >>> loss = client.step(torch.rand(4, 8), torch.tensor([0, 1, 2, 0]))
    >>> client.predict(torch.rand(4, 8)).shape
    torch.Size([4, 3])
"""

from lightsplit.codecs import CODECS, Codec
from lightsplit.errors import LightSplitError
from lightsplit.formats import WireFormats
from lightsplit.losses import within_class_compaction
from lightsplit.runtime import Client, ClientSide, Server, ServerSide
from lightsplit.splitting import SplitModel, legal_cuts, merge, split
from lightsplit.training import Schedule, Trainer, evaluate, verify
from lightsplit.transports import ByteMeter, through

make_codec = CODECS.create

__all__ = [
    "ByteMeter",
    "Client",
    "ClientSide",
    "Codec",
    "LightSplitError",
    "Schedule",
    "Server",
    "ServerSide",
    "SplitModel",
    "Trainer",
    "WireFormats",
    "evaluate",
    "legal_cuts",
    "make_codec",
    "merge",
    "split",
    "through",
    "verify",
    "within_class_compaction",
]
