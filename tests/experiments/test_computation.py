import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from lightsplit.codecs import CODECS
from lightsplit.experiments import build, from_settings
from lightsplit.experiments.computation import measure_computation
from lightsplit.experiments.cuts import make_cuts
from lightsplit.experiments.pieces import load_parts

pytestmark = pytest.mark.slow

DATASETS = ("digits", "fashion-mnist", "gtsrb", "cifar10")
BATCH = 4
# Nothing is sent with none, and torch does not count the Fourier transforms of c3.
# franken needs a file of its own training: test_distillation.py.
SENT = [name for name in CODECS.names() if name not in ("none", "c3", "franken")]
WITHOUT_RATIO = ("raw", "lightsplit-b", "fsq", "splitfc")


def counted(call):
    """Return the result and torch's count of operations per sample."""
    with FlopCounterMode(display=False) as counter:
        result = call()
    return result, counter.get_total_flops() // BATCH


def counts_of_torch(experiment):
    """Return forward and backward of the client and of the server, by torch."""
    parts, codec, *_ = make_cuts(experiment, load_parts(experiment))
    task = experiment.make_task()
    shape, labels = task.image_shape, torch.arange(BATCH) % task.class_count
    parts.whole.train()
    warm = codec.encoder(parts.head(torch.rand(BATCH, *shape)))
    parts.tail(parts.backbone(codec.decoder(warm)))  # stand-ins find their shapes
    code, up = counted(lambda: codec.encoder(parts.head(torch.rand(BATCH, *shape))))
    leaf = code._replace(values=code.values.detach().requires_grad_())
    output, middle = counted(lambda: parts.backbone(codec.decoder(leaf)))
    returned = output.detach().requires_grad_()
    loss, down = counted(lambda: cross_entropy(parts.tail(returned), labels))
    _, tail = counted(loss.backward)
    _, server = counted(lambda: output.backward(returned.grad))
    _, head = counted(lambda: code.values.backward(leaf.values.grad))
    return {"client": (up + down, head + tail), "server": (middle, server)}


@pytest.mark.parametrize("codec", SENT)
@pytest.mark.parametrize("dataset", DATASETS)
def test_operations_are_those_that_torch_counts(dataset, codec):
    settings = {"dataset": dataset, "codec": codec}
    settings |= {} if codec in WITHOUT_RATIO else {"ratio": 32}
    cost = measure_computation(from_settings(settings))
    expected = counts_of_torch(from_settings(settings))
    for side, ours in (("client", cost.client), ("server", cost.server)):
        assert (ours.forward_flops, ours.backward_flops) == expected[side]


def layer_flops(model, inputs):
    """Return twice the multiplications of every convolution and dense layer."""
    counts = []

    def count(layer, _inputs, output):
        counts.append(2 * layer.weight[0].numel() * output[0].numel())

    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(count)
    model(inputs)
    return sum(counts)


@pytest.mark.parametrize("dataset", DATASETS)
def test_forward_operations_are_those_of_the_layers(dataset):
    experiment = from_settings({"dataset": dataset, "codec": "raw"})
    cost = measure_computation(experiment)
    inputs = torch.rand(BATCH, *experiment.make_task().image_shape)
    expected = layer_flops(load_parts(experiment).whole, inputs)
    assert cost.client.forward_flops + cost.server.forward_flops == expected


def test_the_structured_projection_costs_two_fourier_transforms_each_way():
    cost = measure_computation(from_settings({"projection": "dct"}))
    expected = 2 * round(2.5 * 1024 * math.log2(1024))
    for part in (cost.encoder, cost.decoder):
        assert (part.forward_flops, part.backward_flops) == (expected, expected)


def test_a_frozen_backbone_needs_no_gradients_of_weights():
    settings = {"dataset": "digits", "codec": "raw"}
    free = measure_computation(from_settings(settings)).server
    frozen = from_settings({**settings, "freeze_backbone": True})
    fixed = measure_computation(frozen).server
    assert fixed.backward_flops == free.backward_flops // 2
    assert fixed.training_bytes < free.training_bytes


def test_parameters_are_those_of_the_record():
    experiment = from_settings({"codec": "lightsplit-l", "train_limit": 100})
    cost, trainer = measure_computation(experiment), build(experiment).trainer
    for side, ours in (
        (trainer.clients[0].side, cost.client),
        (trainer.server.side, cost.server),
    ):
        assert ours.parameters == sum(p.numel() for p in side.modules.parameters())


def test_the_structured_projection_holds_and_computes_less_than_the_dense_one():
    settings = {"dataset": "fashion-mnist"}
    dense, structured = (
        measure_computation(from_settings({**settings, "projection": name})).encoder
        for name in ("haar", "dct")
    )
    assert dense.forward_flops == 2 * 2880 * 360
    assert structured.forward_flops < dense.forward_flops / 5
    assert structured.held_bytes < dense.held_bytes / 5


def test_adam_keeps_gradients_and_two_slots_of_every_weight():
    cost = measure_computation(from_settings({"codec": "raw"})).client
    assert cost.training_bytes // (4 * cost.parameters) == 3
    assert cost.held_bytes >= 4 * cost.parameters


def test_the_memory_of_autograd_includes_the_inputs_of_every_convolution():
    cost = measure_computation(from_settings({"codec": "raw"})).client
    assert cost.sample_bytes >= 4 * 8 * 8  # the image itself
