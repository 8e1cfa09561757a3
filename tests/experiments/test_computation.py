import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from lightsplit.codecs import CODECS
from lightsplit.experiments import build, make_experiment
from lightsplit.experiments.computation import measure_computation
from lightsplit.experiments.cuts import make_cuts
from lightsplit.experiments.pieces import FACTS, load_parts

pytestmark = pytest.mark.slow

DATASETS = ("digits", "fashion-mnist", "gtsrb", "cifar10")
BATCH = 4


def counted(call):
    """Return the result and torch's count of operations per sample."""
    with FlopCounterMode(display=False) as counter:
        result = call()
    return result, counter.get_total_flops() // BATCH


def counts_of_torch(experiment):
    """Return forward and backward of the client and of the server, by torch."""
    parts, codec, *_ = make_cuts(experiment, load_parts(experiment))
    shape, classes = FACTS[experiment.dataset]
    labels = torch.arange(BATCH) % classes
    parts.whole.train()
    code, up = counted(lambda: codec.encoder(parts.head(torch.rand(BATCH, *shape))))
    leaf = code._replace(values=code.values.detach().requires_grad_())
    output, middle = counted(lambda: parts.backbone(codec.decoder(leaf)))
    returned = output.detach().requires_grad_()
    loss, down = counted(lambda: cross_entropy(parts.tail(returned), labels))
    _, tail = counted(loss.backward)
    _, server = counted(lambda: output.backward(returned.grad))
    _, head = counted(lambda: code.values.backward(leaf.values.grad))
    return {"client": (up + down, head + tail), "server": (middle, server)}


@pytest.mark.parametrize("codec", CODECS.names())
@pytest.mark.parametrize("dataset", DATASETS)
def test_operations_are_those_that_torch_counts(dataset, codec):
    ratio = 1 if codec == "raw" else 32
    settings = {"dataset": dataset, "codec": codec, "ratio": ratio}
    cost = measure_computation(make_experiment(settings))
    expected = counts_of_torch(make_experiment(settings))
    for side, ours in (("client", cost.client), ("server", cost.server)):
        assert (ours.forward_flops, ours.backward_flops) == expected[side]


def test_a_frozen_backbone_needs_no_gradients_of_weights():
    settings = {"dataset": "digits", "codec": "raw"}
    free = measure_computation(make_experiment(settings)).server
    frozen = make_experiment({**settings, "freeze_backbone": True})
    fixed = measure_computation(frozen).server
    assert fixed.backward_flops == free.backward_flops // 2
    assert fixed.training_bytes < free.training_bytes


def test_parameters_are_those_of_the_record():
    experiment = make_experiment({"codec": "lightsplit-l", "train_limit": 100})
    cost, trainer = measure_computation(experiment), build(experiment).trainer
    for side, ours in (
        (trainer.clients[0].side, cost.client),
        (trainer.server.side, cost.server),
    ):
        assert ours.parameters == sum(p.numel() for p in side.modules.parameters())


def test_the_structured_projection_holds_and_computes_less_than_the_dense_one():
    settings = {"dataset": "fashion-mnist"}
    dense, structured = (
        measure_computation(make_experiment({**settings, "projection": name})).encoder
        for name in ("haar", "dct")
    )
    assert dense.forward_flops == 2 * 2880 * 360
    assert structured.forward_flops < dense.forward_flops / 5
    assert structured.held_bytes < dense.held_bytes / 5


def test_adam_keeps_gradients_and_two_slots_of_every_weight():
    cost = measure_computation(make_experiment({"codec": "raw"})).client
    assert cost.training_bytes // (4 * cost.parameters) == 3
    assert cost.held_bytes >= 4 * cost.parameters


def test_what_autograd_keeps_includes_the_inputs_of_every_convolution():
    cost = measure_computation(make_experiment({"codec": "raw"})).client
    assert cost.sample_bytes >= 4 * 8 * 8  # the image itself
