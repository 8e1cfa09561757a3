"""SplitFed in one process, against federated averaging that is written out here."""

import copy
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from lightsplit.codecs import CODECS
from lightsplit.runs.rounds import Attendance, drawn_order
from lightsplit.runs.schedule import Schedule
from lightsplit.runtime import (
    Client,
    ClientSide,
    Secret,
    Server,
    ServerSide,
    WeightAveraging,
)
from lightsplit.simulation import SplitFedTrainer
from lightsplit.transports import ByteMeter, through
from lightsplit.transports.sealing import SealingKey

SIZES = (5, 3, 4)  # samples in a batch of each owner
STEPS = 3  # of a round
ROUNDS = 2
OPTIMIZERS = {
    "sgd": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
    "adam": partial(torch.optim.Adam, lr=0.01),
}
BATCHES = STEPS * ROUNDS
VERSIONS = ["v1", "v2"]


class Data:
    """A few batches of one owner."""

    def __init__(self, owner):
        drawn = torch.Generator().manual_seed(owner)
        rows = SIZES[owner]
        self.inputs = [torch.randn(rows, 6, generator=drawn) for _ in range(BATCHES)]
        self.labels = [
            torch.randint(0, 3, (rows,), generator=drawn) for _ in range(BATCHES)
        ]

    def batch(self, step):
        return self.inputs[step % BATCHES], self.labels[step % BATCHES]


def parts():
    torch.manual_seed(0)
    first, second = nn.Linear(6, 8, bias=False), nn.Linear(8, 8, bias=False)
    head = nn.Sequential(first, nn.BatchNorm1d(8), nn.Tanh())
    backbone = nn.Sequential(second, nn.BatchNorm1d(8), nn.Linear(8, 7))
    return head, backbone, nn.Linear(7, 3)


def run(version, optimizer="sgd", participation=()):
    head, backbone, tail = parts()
    codec, make = CODECS.create("raw", shape=(8,)), OPTIMIZERS[optimizer]
    server = Server(ServerSide(backbone, codec, make))
    side, meter = ClientSide(head, tail, codec, make), ByteMeter()
    clients = [
        Client(side, through(meter, server.handle), index=index, secret=Secret(0))
        for index in range(3)
    ]
    data = [Data(owner) for owner in range(3)]
    trainer = SplitFedTrainer(
        clients,
        server,
        batches=data,
        schedule=Schedule([BATCHES] * 3, turn_steps=STEPS),
        meter=meter,
        test=[data[0].batch(0)],
        averaging=WeightAveraging(SealingKey(bytes(32)), max(SIZES)),
        has_copies=version == "v1",
        seed=0,
        participation=participation,
    )
    for _ in trainer.run():
        pass
    return trainer


def trained(model, optimizer, owner, first):
    """Train a whole model on one owner's batches of a round, as anybody would."""
    for step in range(first, first + STEPS):
        inputs, labels = Data(owner).batch(step)
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()


def mean(models):
    """Return the mean of models by samples, counters of batches rounded."""
    weights = [size / sum(SIZES) for size in SIZES]
    states = [one.state_dict() for one in models]
    return {
        name: sum(
            state[name].double() * weight
            for state, weight in zip(states, weights, strict=True)
        )
        .round(decimals=0 if "num_batches" in name else 12)
        .to(first.dtype)
        for name, first in states[0].items()
    }


def fedavg(optimizer):
    """Federated averaging of the model that nobody has split."""
    whole = nn.Sequential(*parts())
    for number in range(ROUNDS):
        copies = [copy.deepcopy(whole) for _ in SIZES]
        for owner, one in enumerate(copies):
            trained(one, OPTIMIZERS[optimizer](one.parameters()), owner, number * STEPS)
        whole.load_state_dict(mean(copies))
    return whole


def one_backbone(optimizer):
    """SplitFed v2: a backbone that all train, heads and tails that are averaged."""
    head, backbone, tail = parts()
    server = OPTIMIZERS[optimizer](backbone.parameters())
    ends = nn.ModuleList([head, tail])
    for number in range(ROUNDS):
        copies = [copy.deepcopy(ends) for _ in SIZES]
        for owner in drawn_order(3, seed=0, number=number):
            mine = copies[owner]
            own = OPTIMIZERS[optimizer](mine.parameters())
            for step in range(number * STEPS, (number + 1) * STEPS):
                inputs, labels = Data(owner).batch(step)
                own.zero_grad()
                server.zero_grad()
                cross_entropy(mine[1](backbone(mine[0](inputs))), labels).backward()
                own.step()
                server.step()
        ends.load_state_dict(mean(copies))
    return nn.Sequential(ends[0], backbone, ends[1])


def joined(trainer):
    client = trainer.clients[0].side.modules
    backbone = trainer.server.side.modules["backbone"]
    return nn.Sequential(client["head"], backbone, client["tail"])


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    ("version", "expected"), [("v1", fedavg), ("v2", one_backbone)]
)
def test_splitfed_is_what_its_definition_says_of_the_unsplit_model(
    version, expected, optimizer
):
    reference = expected(optimizer).state_dict()
    found = joined(run(version, optimizer)).state_dict()
    before = nn.Sequential(*parts()).state_dict()
    for name, value in reference.items():
        torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-6)
        assert not torch.allclose(found[name], before[name], atol=1e-5)


def test_the_two_versions_differ():
    one, two = (joined(run(version)).state_dict() for version in VERSIONS)
    assert not torch.allclose(one["1.0.weight"], two["1.0.weight"], atol=1e-4)


def test_the_order_of_owners_is_drawn_anew_for_every_round():
    orders = [tuple(drawn_order(5, seed=0, number=number)) for number in range(6)]
    assert len(set(orders)) > 1
    assert all(sorted(order) == list(range(5)) for order in orders)
    assert drawn_order(5, seed=0, number=3) == list(orders[3])


@pytest.mark.parametrize("version", VERSIONS)
def test_an_absent_owner_leaves_no_trace_and_takes_its_batches_later(version):
    trainer = run(version, participation=[Attendance.full([0, 2])] * 2)
    assert trainer.progress.client_steps == [6, 0, 6]
    assert (trainer.progress.steps, trainer.progress.skipped) == (12, 6)
    assert trainer.progress.samples == 6 * (SIZES[0] + SIZES[2])
    assert trainer.clients[1].steps == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_an_owner_without_a_share_is_in_the_backbone_and_not_in_the_head(version):
    left = Attendance((0, 1, 2), (0, 1, 2), (0, 2), (0, 2))
    lost, whole, absent = (
        joined(run(version, participation=[one])).state_dict()
        for one in (left, Attendance.full(range(3)), Attendance.full([0, 2]))
    )
    assert torch.equal(lost["1.0.weight"], whole["1.0.weight"])
    assert not torch.equal(lost["0.0.weight"], whole["0.0.weight"])
    if version == "v1":  # in v2 the absent owner's steps move the others' too
        assert torch.equal(lost["0.0.weight"], absent["0.0.weight"])


@pytest.mark.parametrize("version", VERSIONS)
def test_optimizers_that_start_anew_are_not_in_the_state_between_rounds(version):
    trainer = run(version, "adam")
    states = [trainer.clients[0].side.state(), trainer.server.side.state()]
    has_slots = [any(name.startswith("optimizer.") for name in one) for one in states]
    assert has_slots == [False, version == "v2"]
