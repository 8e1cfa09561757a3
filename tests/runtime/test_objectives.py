"""Objectives change the client and nothing that the server sees of a step."""

import inspect

import pytest
import torch

from lightsplit.errors import ConfigError
from lightsplit.objectives import OBJECTIVES, Objective, WeightedObjective
from lightsplit.results import tensors

CHANGES_WHAT_IS_SENT = {
    "bit-flips": "flips bits of a code",
    "cem": "bounds codes and adds noise to them",
    "disco": "prunes channels before they are coded",
    "dp": "draws codes by randomised response, or adds noise to them",
    "noise": "adds noise to a code",
    "patch-shuffle": "permutes tokens before they are coded",
    "shredder": "adds learned noise to activations",
}
IN_TREE = [name for name in OBJECTIVES.names() if not OBJECTIVES.is_plug_in(name)]
UNCHANGED = [name for name in IN_TREE if name not in CHANGES_WHAT_IS_SENT]
SENSIBLE = {  # codecs, where an objective makes sense on some of them alone
    "bit-balance": ["lightsplit-b"],
    "class-codes": ["lightsplit-f", "lightsplit-b"],
    "conditional-entropy": ["lightsplit-b"],
}
ON_CODECS = [
    (name, codec)
    for name in UNCHANGED
    for codec in SENSIBLE.get(name, ["lightsplit-f", "topk", "lightsplit-b"])
]
OPTIONS = {"lightsplit-b": {"bits": 6, "hidden": 8}}


class RunningMean(Objective):
    """Pulls codes to a running mean of codes: a buffer that every step changes."""

    name = "running-mean"

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, view):
        with torch.no_grad():
            self.mean.lerp_(view.code.values.mean(), 0.3)
        return (view.code.values - self.mean).square().mean()


class Everything(Objective):
    """Depends on all that a client has, and on chance."""

    name = "everything"

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))
        self.outputs = []

    def forward(self, view):
        self.outputs.append(view.output)
        seen = 0 if view.output is None else view.output.square().mean()
        noise = torch.rand_like(view.activation)
        own = (view.activation * noise).mean() + view.code.values.mean()
        return self.scale * (own + seen + view.inputs.mean() + view.labels.sum())


class NeedsOutput(Objective):
    name = "needs-output"

    def check(self, codec, *, has_tail):
        if not has_tail:
            raise ConfigError(f"needs-output needs the tail; {codec.name}")


def run(split, batches):
    """Train and return every message."""
    log, handle = [], split.server.handle

    def record(request):
        reply = handle(request)
        log.extend([request, reply])
        return reply

    split.client.send = record
    for inputs, labels in batches:
        split.client.step(inputs, labels)
    return log


def tensors_of(message):
    for name in ("code", "output", "written"):
        if hasattr(message, name):
            values, side = getattr(message, name)
            return [values, *side]
    raise AssertionError(message)


def made(name, codec):
    """Return a registered objective for a codec, and three classes."""
    kind, known = OBJECTIVES.get(name), {"codec": codec, "classes": 3}
    taken = inspect.signature(kind).parameters
    return kind(**{key: value for key, value in known.items() if key in taken})


def check_unchanged(without, with_it, batches, count):
    """Check that two runs sent the same messages and left the same server."""
    first, second = (run(split, batches) for split in (without, with_it))
    assert len(first) == len(second) == count * len(batches)
    for one, other in zip(first, second, strict=True):
        assert all(map(torch.equal, tensors_of(one), tensors_of(other)))
        assert getattr(one, "loss", None) == getattr(other, "loss", None)
    states = without.server.side.state(), with_it.server.side.state()
    assert all(
        torch.equal(tensor, states[1][name]) for name, tensor in states[0].items()
    )
    heads = without.parts.head.state_dict(), with_it.parts.head.state_dict()
    return torch.equal(heads[0]["0.weight"], heads[1]["0.weight"])


@pytest.mark.parametrize("topology", ["u", "vanilla"])
@pytest.mark.parametrize(("name", "codec"), ON_CODECS)
def test_an_objective_changes_neither_the_messages_of_a_step_nor_the_server(
    pair, make_batches, name, codec, topology
):
    known = {"topology": topology, **OPTIONS.get(codec, {})}
    without, count = pair(codec, **known), 4 if topology == "u" else 2
    for weight, steps in ((10.0, 1), (0.0, 3)):  # weight 0 only measures
        objective = WeightedObjective(made(name, without.codec), weight)
        objective.check(without.codec, has_tail=topology == "u")
        with_it = pair(codec, objectives=[objective], **known)
        same_head = check_unchanged(
            pair(codec, **known), with_it, make_batches(steps), count
        )
        assert same_head == (weight == 0)


@pytest.mark.parametrize("make", [RunningMean, Everything])
def test_nor_does_one_with_state_that_depends_on_all_that_a_client_has(
    pair, make_batches, make
):
    with_it = pair("topk", objectives=[WeightedObjective(make(), 10.0)])
    assert not check_unchanged(pair("topk"), with_it, make_batches(1), 4)


@pytest.mark.parametrize("name", IN_TREE)
def test_an_objective_that_changes_what_is_sent_is_one_of_those_named_here(name):
    kind = OBJECTIVES.get(name)
    changes = (kind.cover, kind.disturb) != (Objective.cover, Objective.disturb)
    assert changes == (name in CHANGES_WHAT_IS_SENT)


def test_the_output_that_an_objective_sees_belongs_to_no_graph(pair, make_batches):
    objective = Everything()
    split = pair(objectives=[WeightedObjective(objective, 1.0)])
    run(split, make_batches(1))
    assert objective.outputs[0].shape == (8, 3)
    assert not objective.outputs[0].requires_grad


def test_the_weights_of_an_objective_are_trained_with_the_side(pair, make_batches):
    objective = Everything()
    run(pair(objectives=[WeightedObjective(objective, 1.0)]), make_batches(1))
    assert objective.scale != 1


@pytest.mark.parametrize("make", [RunningMean, Everything])
def test_a_resumed_side_with_state_in_its_objective_continues_bit_for_bit(
    pair, make_batches, make
):
    def begin():
        return pair("lightsplit-f", objectives=[WeightedObjective(make(), 0.5)])

    whole, broken, resumed = begin(), begin(), begin()
    data = make_batches(6)
    run(whole, data)
    run(broken, data[:3])
    kept = tensors.to_bytes(broken.side.state())
    assert any(name.startswith("objectives.") for name in broken.side.state())
    resumed.side.load(tensors.from_bytes(kept))
    resumed.server.side.load(broken.server.side.state())
    resumed.client.steps = 3
    run(resumed, data[3:])
    states = whole.side.state(), resumed.side.state()
    assert states[0].keys() == states[1].keys()
    assert all(
        torch.equal(tensor, states[1][name]) for name, tensor in states[0].items()
    )


def test_values_are_reported_as_means_over_samples(pair, make_batches):
    class Batches:
        def batch(self, step):
            return make_batches(2, size=4 + 4 * step)[step]

    split = pair(objectives=[WeightedObjective(Everything(), 0.0)])
    assert split.client.last_turn is None
    values, samples = [], []
    step = split.client.step

    def spy(inputs, labels):
        loss = step(inputs, labels)
        values.append(split.client.objective_values["everything"])
        samples.append(len(labels))
        return loss

    split.client.step = spy
    report = split.client.run_turn(Batches(), 2)
    mean = sum(v * n for v, n in zip(values, samples, strict=True)) / sum(samples)
    assert report.objective_means == {"everything": pytest.approx(mean)}
    assert split.client.last_turn is report
    assert report.objective_samples == report.samples == 12


def test_a_weight_of_zero_measures_and_changes_nothing(pair, make_batches, compaction):
    plain = pair("lightsplit-f")
    measured = pair("lightsplit-f", objectives=compaction(0.0))
    for split in (plain, measured):
        run(split, make_batches(3))
    assert measured.client.objective_values["wcc"] > 0
    states = plain.side.state(), measured.side.state()
    assert all(
        torch.equal(tensor, states[1][name]) for name, tensor in states[0].items()
    )


def test_an_objective_is_given_once_and_refuses_for_itself(pair, compaction):
    with pytest.raises(ConfigError, match="expected each objective once, got wcc more"):
        pair("lightsplit-f", objectives=[*compaction(1.0), *compaction(2.0)])
    needs = [WeightedObjective(NeedsOutput(), 1.0)]
    pair("raw", objectives=needs)
    with pytest.raises(ConfigError, match="needs the tail; raw"):
        pair("raw", topology="vanilla", objectives=needs)
