"""Laws that every registered objective keeps."""

import inspect

import pytest
import torch

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ConfigError
from lightsplit.objectives import (
    OBJECTIVES,
    ClientView,
    ServerPart,
    WeightedObjective,
)

RAW = CODECS.create("raw", shape=(6,))
BITS = CODECS.create("lightsplit-b", shape=(9,), bits=6)
OPTIONS = {
    "conditional-entropy": {"budget": 0.0},
    "cem": {"clusters": 1},
    "dp": {"epsilon": 1.0},
}
TOKENS = CODECS.create("raw", shape=(3, 2))
ON_NUMBERS = {"cem", "noise", "disco", "shredder"}  # the others work on bits too
ONLY_DISTURBING = {"bit-flips", "noise", "dp", "patch-shuffle"}
LEARNING = {"disco", "shredder"}  # the term is for weights of their own
every_objective = pytest.mark.parametrize("name", OBJECTIVES.names())


def make_view(rows=8):
    inputs = torch.rand(rows, 5)
    activation = (inputs @ torch.rand(5, 6)).requires_grad_()
    labels = torch.arange(rows) % 3
    latent = activation - activation.detach().mean(0)
    values = latent + (latent.detach().sign() - latent.detach())
    return ClientView(inputs, activation, Code(values), None, labels, latent)


def make(name, **options):
    """Return an objective with what a run gives it."""
    codec = TOKENS if name == "patch-shuffle" else RAW if name in ON_NUMBERS else BITS
    server = ServerPart(torch.nn.ReLU(), torch.rand(2, 3, 2))
    known = {"codec": codec, "classes": 3, "releases": 1}
    known |= {"input_shape": (5,), "server": server}
    taken = inspect.signature(OBJECTIVES.get(name)).parameters
    given = {key: value for key, value in known.items() if key in taken}
    return OBJECTIVES.create(name, **given, **options)


@every_objective
def test_it_is_a_finite_number_with_a_gradient_for_what_it_trains(name):
    view = make_view()
    objective = make(name, **OPTIONS.get(name, {}))
    value = objective(view)
    assert value.shape == ()
    assert value.isfinite()
    if name in ONLY_DISTURBING:  # it changes what is sent and adds nothing to the loss
        assert value == 0
        return
    wanted = [*objective.parameters()] if name in LEARNING else [view.activation]
    gradients = torch.autograd.grad(value, wanted)
    assert any(gradient.abs().sum() > 0 for gradient in gradients)


@every_objective
def test_what_is_sent_can_be_packed_by_the_codec_that_it_suits(name):
    view, objective = make_view(), make(name, **OPTIONS.get(name, {}))
    sent = objective.disturb(view.code)
    assert sent.values.shape == view.code.values.shape
    assert sent.values.requires_grad
    if name not in ON_NUMBERS:
        assert torch.equal(BITS.unpack(BITS.pack(sent)).values, sent.values)


@every_objective
def test_it_has_its_registered_name_and_a_description(name):
    objective = make(name, **OPTIONS.get(name, {}))
    assert objective.name == name
    assert objective.__doc__


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf")])
def test_a_weight_that_is_none_is_refused(weight):
    weighted = WeightedObjective(OBJECTIVES.create("wcc"), weight)
    with pytest.raises(ConfigError, match="weight of wcc must be a finite number of 0"):
        weighted.check(RAW, has_tail=True)


def test_compaction_is_refused_where_a_code_mixes_samples():
    codec = CODECS.create("raw", shape=(6,))
    codec.__class__ = type("Mixing", (type(codec),), {"is_sample_wise": False})
    with pytest.raises(ConfigError, match="one code per sample; codec 'raw' mixes"):
        WeightedObjective(OBJECTIVES.create("wcc"), 0.1).check(codec, has_tail=True)
