"""Owners who work at the same time, in one process."""

import copy
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from lightsplit.codecs import CODECS
from lightsplit.errors import LightSplitError
from lightsplit.runs.rounds import Attendance
from lightsplit.runs.schedule import Schedule
from lightsplit.runtime import (
    Client,
    ClientSide,
    JoiningServer,
    Secret,
    Server,
    ServerSide,
)
from lightsplit.simulation import Gathering, RoundTrainer, SharedSide
from lightsplit.transports import ByteMeter, through
from lightsplit.transports.sealing import SealingKey

SIZES = (5, 3, 4)  # samples in a batch of each owner
ROUNDS = 3
OPTIMIZERS = {
    "sgd": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
    "adam": partial(torch.optim.Adam, lr=0.01),
}


class Data:
    """A few batches of one owner."""

    def __init__(self, owner):
        drawn = torch.Generator().manual_seed(owner)
        rows = SIZES[owner]
        self.inputs = [torch.randn(rows, 6, generator=drawn) for _ in range(ROUNDS)]
        self.labels = [
            torch.randint(0, 3, (rows,), generator=drawn) for _ in range(ROUNDS)
        ]

    def __len__(self):
        return ROUNDS

    def batch(self, step):
        return self.inputs[step % ROUNDS], self.labels[step % ROUNDS]


def parts(*, norm=False):
    torch.manual_seed(0)
    bn = [nn.BatchNorm1d(8)] if norm else []
    head = nn.Sequential(nn.Linear(6, 8), *bn, nn.Tanh())
    backbone = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 7))
    return head, backbone, nn.Linear(7, 3)


def run(heads="shared", optimizer="sgd", participation=(), *, norm=False, epochs=1):
    head, backbone, tail = parts(norm=norm)
    codec = CODECS.create("raw", shape=(8,))
    make = OPTIMIZERS[optimizer]
    server = JoiningServer(ServerSide(backbone, codec, make))
    one = ClientSide(head, tail, codec, make)
    sides = [one] * 3
    if heads == "private":
        sides = [
            ClientSide(copy.deepcopy(head), copy.deepcopy(tail), codec, make)
            for _ in SIZES
        ]
    gathering, meter = Gathering(server.handle), ByteMeter()
    clients = [
        Client(side, through(meter, gathering.send), index=index, secret=Secret(0))
        for index, side in enumerate(sides)
    ]
    is_shared = heads == "shared"
    key = SealingKey(bytes(32))
    data = [Data(owner) for owner in range(len(SIZES))]
    trainer = RoundTrainer(
        clients,
        server,
        batches=data,
        schedule=Schedule([ROUNDS] * 3, turn_steps=1, epochs=epochs),
        meter=meter,
        test=[data[0].batch(0)],
        gathering=gathering,
        shared=SharedSide(one, key, max(SIZES)) if is_shared else None,
        participation=participation,
    )
    for _ in trainer.run():
        pass
    return trainer


def weights(trainer):
    sides = [trainer.server.side, *(client.side for client in trainer.clients)]
    return [tensor for side in sides for tensor in side.state().values()]


def is_same(first, second):
    pairs = zip(weights(first), weights(second), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_round_of_shared_heads_is_one_step_of_the_whole_model_on_the_joined_batch(
    optimizer,
):
    head, backbone, tail = parts()
    whole = nn.Sequential(head, backbone, tail)
    steps = OPTIMIZERS[optimizer](whole.parameters())
    data = [Data(owner) for owner in range(len(SIZES))]
    for step in range(ROUNDS):
        inputs, labels = zip(*(one.batch(step) for one in data), strict=True)
        loss = cross_entropy(whole(torch.cat(inputs)), torch.cat(labels))
        steps.zero_grad()
        loss.backward()
        steps.step()
    trainer = run(optimizer=optimizer)
    client = trainer.clients[0].side.modules
    got = [client["head"], trainer.server.side.modules["backbone"], client["tail"]]
    found = dict(nn.Sequential(*got).named_parameters())
    before = dict(nn.Sequential(*parts()).named_parameters())
    for name, expected in whole.named_parameters():
        torch.testing.assert_close(found[name], expected, rtol=1e-5, atol=1e-6)
        assert not torch.allclose(found[name], before[name], atol=1e-3)


def test_a_private_head_learns_from_the_mean_over_its_own_batch():
    trainer = run("private", epochs=1)
    head, backbone, tail = (copy.deepcopy(part) for part in parts())
    own = OPTIMIZERS["sgd"]([*head.parameters(), *tail.parameters()])
    inputs, labels = Data(1).batch(0)
    cross_entropy(tail(backbone(head(inputs))), labels).backward()
    own.step()
    first = run("private", participation=[Attendance.full(range(3))])
    side = first.clients[1].side.modules
    torch.testing.assert_close(side["head"][0].weight, head[0].weight)
    torch.testing.assert_close(side["tail"].weight, tail.weight)
    assert trainer.progress.steps == 3 * ROUNDS


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_the_order_in_which_codes_come_does_not_change_a_bit(heads, monkeypatch):
    plain = run(heads, "adam")
    forward = JoiningServer.forward_round
    backward = JoiningServer.backward_round
    monkeypatch.setattr(
        JoiningServer,
        "forward_round",
        lambda self, number, codes: forward(self, number, codes[::-1]),
    )
    monkeypatch.setattr(
        JoiningServer, "backward_round", lambda self, came: backward(self, came[::-1])
    )
    assert is_same(plain, run(heads, "adam"))


def test_owners_average_the_running_statistics_of_a_shared_head():
    trainer = run(norm=True, participation=[Attendance.full(range(3))])
    head, _, _ = parts(norm=True)
    found = []
    for owner in range(3):
        mine = copy.deepcopy(head).train()
        mine(Data(owner).batch(0)[0])
        found.append(mine[1].running_mean * SIZES[owner] / sum(SIZES))
    got = trainer.clients[0].side.modules["head"][1]
    torch.testing.assert_close(got.running_mean, sum(found))
    assert got.num_batches_tracked == 1


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_an_absent_owner_changes_nothing_and_repeats_nothing(heads):
    trainer = run(heads, participation=[Attendance.full([0, 2])])
    assert trainer.progress.client_steps == [1, 0, 1]
    assert (trainer.progress.steps, trainer.progress.skipped) == (2, 1)
    assert trainer.progress.samples == SIZES[0] + SIZES[2]
    assert trainer.clients[1].steps == 0


def test_an_owner_that_leaves_after_its_code_has_no_weight_in_the_round():
    left = Attendance((0, 1, 2), (0, 2), (0, 2), (0, 2))
    pairs = zip(
        weights(run(participation=[left])),
        weights(run(participation=[Attendance.full([0, 2])])),
        strict=True,
    )
    for mine, theirs in pairs:  # a kernel may round otherwise with more rows
        torch.testing.assert_close(mine, theirs)


def test_a_private_owner_that_does_not_hand_in_its_round_keeps_its_head():
    lost = Attendance((0, 1, 2), (0, 1, 2), (0, 1, 2), (0, 2))
    trainer, whole = (
        run("private", participation=[one]) for one in (lost, Attendance.full(range(3)))
    )
    head, _, _ = parts()
    kept = trainer.clients[1].side.modules["head"][0].weight
    assert torch.equal(kept, head[0].weight)
    mine, theirs = (
        dict(one.server.side.modules.named_parameters()) for one in (trainer, whole)
    )
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_a_round_of_one_owner_is_a_step_of_a_plain_server():
    found = []
    for kind in (Server, JoiningServer):
        head, backbone, tail = parts()
        codec = CODECS.create("raw", shape=(8,))
        server = kind(ServerSide(backbone, codec, OPTIMIZERS["adam"]))
        side = ClientSide(head, tail, codec, OPTIMIZERS["adam"])
        client = Client(side, server.handle, secret=Secret(0))
        for step in range(ROUNDS):
            client.step(*Data(0).batch(step))
        found.append({**server.side.state(), **side.state()})
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_an_error_of_one_owner_ends_the_round_for_all():
    class Broken(Data):
        def batch(self, _step):
            raise LightSplitError("no such file")

    trainer = run(participation=[Attendance.full(range(3))])
    trainer.batches[1] = Broken(1)
    trainer._participation = []
    with pytest.raises(LightSplitError, match="no such file"):
        list(trainer.run())
