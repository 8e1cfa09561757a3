"""A small model with dropout and running statistics, cut for loops of one's own."""

import threading
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import lightsplit
from lightsplit.errors import LightSplitError

ADAM = partial(torch.optim.Adam, lr=0.01)


def make_network(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Linear(8, 6),
            nn.ReLU(),
            nn.Linear(6, 6),
            nn.BatchNorm1d(6),
            nn.Dropout(0.3),
            nn.Linear(6, 3),
        )


CUT = {"head_until": "0", "tail_from": "5", "example": torch.zeros(4, 8)}


def batch(step):
    generator = torch.Generator().manual_seed(step)
    inputs = torch.rand(4, 8, generator=generator)
    return inputs, torch.randint(3, (4,), generator=generator)


def loss_of(model, step):
    inputs, labels = batch(step)
    return nn.functional.cross_entropy(model(inputs), labels)


def make_ends(network=None, *, cut=CUT, folder=None, **options):
    """Return host and connected model, in one process."""
    network = network or make_network()
    host = lightsplit.host(network, optimizer=ADAM, **cut)
    host.open(folder, **options)
    return host, lightsplit.connect(network, server=host, **cut)


def train(model, optimizer, steps, start=0):
    model.train()
    for step in range(start, start + steps):
        loss_of(model, step).backward()
        optimizer.step()
        optimizer.zero_grad()


def same(one, other):
    """Say whether two models have the same weights, bit for bit."""
    mine, theirs = one.state_dict(), other.state_dict()
    return mine.keys() == theirs.keys() and all(
        torch.equal(mine[name], theirs[name]) for name in mine
    )


@contextmanager
def served(host, folder, address="127.0.0.1:0", **options):
    """Serve in a thread; yield the address."""
    ports, is_wanted = [], threading.Event()
    is_listening = threading.Event()

    def watch(_loops, port):
        ports.append(port)
        if len(ports) > 1:
            is_listening.set()
        return not is_wanted.is_set()

    def run():
        try:
            host.serve(address, folder, watch=watch, **options)
        except LightSplitError as error:
            host.failure = error
            is_listening.set()

    host.failure = None
    serve = threading.Thread(target=run)
    serve.start()
    try:
        assert is_listening.wait(120)
        yield f"127.0.0.1:{ports[0]}"
    finally:
        is_wanted.set()
        serve.join(120)


@pytest.fixture
def kit():
    """Everything above, by name."""
    return SimpleNamespace(
        ADAM=ADAM,
        CUT=CUT,
        batch=batch,
        loss_of=loss_of,
        make_ends=make_ends,
        make_network=make_network,
        same=same,
        served=served,
        train=train,
    )
