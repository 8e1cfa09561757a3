"""A small network with BatchNorm and the ways to train it whole and split."""

from functools import partial

import pytest
import torch
from torch import nn

from lightsplit.codecs import CODECS
from lightsplit.objectives import WeightedObjective, WithinClassCompaction
from lightsplit.runtime import Client, ClientSide, Server, ServerSide
from lightsplit.splitting import split

SGD = partial(torch.optim.SGD, lr=0.1, momentum=0.9)
ADAM = partial(torch.optim.Adam, lr=1e-2)
SHAPE = (4, 6, 6)


def network():
    torch.manual_seed(7)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Linear(144, 12),
        nn.ReLU(inplace=True),
        nn.Linear(12, 3),
    )


def batches(count=20, size=8):
    generator = torch.Generator().manual_seed(3)
    return [
        (
            torch.rand(size, 1, 6, 6, generator=generator),
            torch.randint(3, (size,), generator=generator),
        )
        for _ in range(count)
    ]


class Pair:
    """A model cut in two, its codec and both ends in one process."""

    def __init__(
        self, codec="raw", *, topology="u", optimizer=SGD, objectives=(), **options
    ):
        self.model = network()
        self.parts = split(self.model, head_until="1", tail_from="9")
        torch.manual_seed(11)
        if not options:
            options = {"ratio": 1 if codec == "raw" else 4}
        self.codec = CODECS.create(codec, shape=SHAPE, **options)
        tail = self.parts.tail
        server_tail, client_tail = (None, tail) if topology == "u" else (tail, None)
        self.server = Server(
            ServerSide(self.parts.backbone, self.codec, optimizer, tail=server_tail)
        )
        self.side = ClientSide(
            self.parts.head, client_tail, self.codec, optimizer, objectives=objectives
        )
        self.client = Client(self.side, self.server.handle)


@pytest.fixture
def pair():
    return Pair


@pytest.fixture
def compaction():
    """Return what makes the objectives of a client: compaction of a weight."""
    return lambda weight: [WeightedObjective(WithinClassCompaction(), weight)]


@pytest.fixture
def make_network():
    return network


@pytest.fixture
def make_batches():
    return batches


@pytest.fixture(params=["sgd", "adam"])
def optimizer(request):
    return {"sgd": SGD, "adam": ADAM}[request.param]
