"""Small models of the kinds that users split, and how to compare two of them."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

IMAGES, TOKENS, ROWS, WIDE = (4, 3, 8, 8), (4, 5, 3), (4, 4), (4, 6)


class Block(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.act(self.norm(self.conv(x)) + x)


class Residual(nn.Module):
    """A residual network of two stages."""

    example = torch.zeros(IMAGES)

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.layer1 = nn.Sequential(Block(), Block())
        self.layer2 = nn.Sequential(Block(), Block())
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        x = self.layer2(self.layer1(functional.relu(self.stem(x))))
        return self.fc(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1))


class LongSkip(nn.Module):
    """An encoder and a decoder with a skip over all but the stem and the last."""

    example = torch.zeros(IMAGES)

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.enc1 = Block()
        self.enc2 = nn.Conv2d(4, 4, 2, stride=2)
        self.dec = nn.ConvTranspose2d(4, 4, 2, stride=2)
        self.mix = nn.Conv2d(8, 4, 1)
        self.out = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        skip = self.enc1(self.stem(x))
        up = self.dec(self.enc2(skip))
        return self.out(self.mix(torch.cat([skip, up], dim=1)))


class Encoder(nn.Module):
    """A transformer encoder with a learned position."""

    example = torch.zeros(TOKENS)

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3, 8)
        self.position = nn.Parameter(torch.randn(1, 5, 8))
        self.register_buffer("scale", torch.tensor(2.0), persistent=False)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
            for _ in range(3)
        )
        self.fc = nn.Linear(8, 3)

    def forward(self, x, mask=None):
        x = self.embed(x) * self.scale + self.position
        if mask is not None:
            x = x * mask
        for layer in self.layers:
            x = layer(x)
        return self.fc(x[:, 0] * self.scale)


class Dropping(nn.Module):
    """Dropout as a module and as a function, here and in a submodule; batch norm."""

    example = torch.zeros(ROWS)

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(6, 6)
            self.second = nn.Linear(6, 6)
            self.register_buffer("mean", torch.zeros(6))
            self.register_buffer("var", torch.ones(6))

        def forward(self, x):
            x = functional.dropout(self.first(x), 0.3, self.training)
            x = functional.batch_norm(x, self.mean, self.var, training=self.training)
            return self.second(x)

    def __init__(self):
        super().__init__()
        self.start = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.inner = self.Inner()
        self.drop = nn.Dropout(0.4)
        self.end = nn.Linear(6, 2)

    def forward(self, x):
        x = self.drop(self.norm(self.start(x)))
        x = functional.dropout(self.inner(x), p=0.5, training=self.training)
        return self.end(self.drop(x))


class Branching(nn.Module):
    """Does what fx cannot follow."""

    example = torch.zeros(WIDE)

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)

    def forward(self, x):
        return self.b(self.a(x)) if x.sum() > 0 else self.a(x)


class Around(nn.Module):
    """Holds an untraceable module between two ordinary ones."""

    example = torch.zeros(WIDE)

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.branching = Branching()
        self.last = nn.Linear(6, 2)

    def forward(self, x):
        return self.last(self.branching(self.first(x)).relu())


def nested():
    return nn.Sequential(
        nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.3), nn.BatchNorm1d(6)),
        nn.Sequential(Branching(), nn.Sequential(nn.ReLU(), nn.Linear(6, 5))),
        nn.Linear(5, 2),
    )


CASES = {
    "a cut inside a stage": (Residual, IMAGES, "layer1.0", "fc"),
    "cuts in two stages": (Residual, IMAGES, "layer1.0", "layer2.1"),
    "a cut inside a block": (Residual, IMAGES, "stem", "layer2.1.conv"),
    "no tail": (Residual, IMAGES, "layer1", None),
    "a skip inside the backbone": (LongSkip, IMAGES, "stem", "out"),
    "a cut where the skip starts": (LongSkip, IMAGES, "enc1", "out"),
    "a transformer": (Encoder, TOKENS, "layers.0", "layers.2"),
    "a position after the cut": (Encoder, TOKENS, "embed", "fc"),
    "dropout around the cuts": (Dropping, ROWS, "norm", "end"),
    "dropout in an opened module": (Dropping, ROWS, "inner.first", "inner.second"),
    "a sequence": (nested, ROWS, "0", "2"),
    "a nested sequence": (nested, ROWS, "0.1", "1.1.1"),
}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def models():
    return SimpleNamespace(
        Around=Around,
        Block=Block,
        Branching=Branching,
        Dropping=Dropping,
        Encoder=Encoder,
        LongSkip=LongSkip,
        Residual=Residual,
        nested=nested,
    )


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    """A model, an input, and two legal cuts."""
    build, shape, head_until, tail_from = request.param
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return SimpleNamespace(
            model=build(), x=torch.randn(shape), head=head_until, tail=tail_from
        )


@pytest.fixture
def run():
    """Call modules in a row under a fixed seed."""

    def run(x, *modules):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            for module in modules:
                x = module(x)
        return x

    return run


@pytest.fixture
def suggested():
    """Read the cuts that a message suggests."""

    def suggested(message, label="nearest legal cuts: "):
        return [each.strip("'") for each in _list_after(message, label)]

    return suggested


def _list_after(message, label):
    assert label in message
    listed = message.partition(label)[2].partition(", or give")[0]
    return listed.split(", ")
