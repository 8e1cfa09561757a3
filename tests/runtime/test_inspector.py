"""Inspectors see the received gradients, and a probe leaves the client unchanged."""

import pytest
import torch


class Recorder:
    """Keeps what it sees; probes where it is told to."""

    def __init__(self, probe_at=()):
        self.seen = []
        self._probe_at = probe_at

    def probe(self, step, labels):
        return (labels + 1) % 3 if step in self._probe_at else None

    def observe(self, step, values, labels, gradient):
        self.seen.append((step, values.detach().clone(), labels, gradient.clone()))


def state(side):
    return {name: tensor.clone() for name, tensor in side.state().items()}


def train(ends, batches):
    for inputs, labels in batches:
        ends.client.step(inputs, labels)


@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_the_gradient_is_seen_before_compaction_is_added(
    pair, make_batches, compaction, topology
):
    seen = []
    for wcc in (0.0, 5.0):
        ends = pair("lightsplit-f", topology=topology, objectives=compaction(wcc))
        ends.client.inspector = Recorder()
        train(ends, make_batches(1))
        seen.append(ends.client.inspector.seen[0][3])
    assert torch.equal(*seen)


def test_inspecting_changes_no_bit(pair, make_batches):
    plain, watched = pair(), pair()
    watched.client.inspector = Recorder()
    for ends in (plain, watched):
        train(ends, make_batches(4))
    first, second = state(plain.side), state(watched.side)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert [step for step, *_ in watched.client.inspector.seen] == [0, 1, 2, 3]


def test_the_client_learns_nothing_from_a_probe_and_the_server_does(pair, make_batches):
    ends = pair()
    ends.client.inspector = Recorder(probe_at=[1])
    first, second = make_batches(2)
    train(ends, [first])
    mine, theirs = state(ends.side), state(ends.server.side)
    train(ends, [second])
    weights = [name for name, _ in ends.side.modules.named_parameters()]
    assert all(torch.equal(mine[name], ends.side.state()[name]) for name in weights)
    changed = state(ends.server.side)
    assert any(not torch.equal(theirs[name], changed[name]) for name in theirs)
    assert torch.equal(ends.client.inspector.seen[1][2], (second[1] + 1) % 3)
