"""Laws that every registered objective keeps."""

import inspect

import pytest
import torch

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ConfigError
from lightsplit.objectives import OBJECTIVES, ClientView, WeightedObjective

RAW = CODECS.create("raw", shape=(6,))
BITS = CODECS.create("lightsplit-b", shape=(9,), bits=6)
OPTIONS = {"conditional-entropy": {"budget": 0.0}, "cem": {"clusters": 1}}
ON_NUMBERS = {"cem", "noise"}  # the others work on bits too
ONLY_DISTURBING = {"bit-flips", "noise"}
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
    known = {"codec": BITS, "classes": 3}
    if name in ON_NUMBERS:
        known["codec"] = RAW
    taken = inspect.signature(OBJECTIVES.get(name)).parameters
    given = {key: value for key, value in known.items() if key in taken}
    return OBJECTIVES.create(name, **given, **options)


@every_objective
def test_it_is_a_finite_number_with_a_gradient_for_the_head(name):
    view = make_view()
    objective = make(name, **OPTIONS.get(name, {}))
    value = objective(view)
    assert value.shape == ()
    assert value.isfinite()
    if name in ONLY_DISTURBING:  # it changes what is sent and adds nothing to the loss
        assert value == 0
        return
    (gradient,) = torch.autograd.grad(value, view.activation)
    assert gradient.abs().sum() > 0


@every_objective
def test_what_is_sent_can_be_packed_by_the_codec_that_it_suits(name):
    view, objective = make_view(), make(name)
    sent = objective.disturb(view.code)
    assert sent.values.shape == view.code.values.shape
    assert sent.values.requires_grad
    if name not in ON_NUMBERS:
        assert torch.equal(BITS.unpack(BITS.pack(sent)).values, sent.values)


@every_objective
def test_it_has_its_registered_name_and_a_description(name):
    objective = make(name)
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
