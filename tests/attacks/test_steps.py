"""A step is complete when the server has changed its weights by it."""

import torch

from lightsplit.attacks import Exchange
from lightsplit.attacks.steps import StepReader
from lightsplit.codecs import CODECS, Code
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
    Wire,
)

VALUES = torch.rand(2, 3)


def reader_of():
    return StepReader(Wire(CODECS.create("raw", shape=(3,))))


def code(step=0, **terms):
    request = CodeMessage(0, step, Code(VALUES), **terms)
    return Exchange(request, OutputMessage(0, step, Code(torch.rand(2, 4))))


def gradient(step=0):
    request = OutputGradient(0, step, torch.rand(2, 4))
    return Exchange(request, CodeGradient(0, step, torch.rand(2, 3)))


def test_in_the_u_shape_the_gradient_completes_the_step_of_its_code():
    reader = reader_of()
    assert reader.read(code()) is None
    seen = reader.read(gradient())
    assert torch.equal(seen.code.values, VALUES)
    assert seen.labels is None


def test_in_the_vanilla_topology_one_exchange_is_a_step():
    labels = torch.tensor([1, 2])
    seen = reader_of().read(code(labels=labels))
    assert torch.equal(seen.labels, labels)


def test_predictions_are_no_steps_and_do_not_come_between():
    reader = reader_of()
    reader.read(code(step=4))
    assert reader.read(code(is_training=False)) is None
    assert reader.read(gradient(step=4)) is not None


def test_a_gradient_of_another_step_completes_nothing():
    reader = reader_of()
    reader.read(code(step=4))
    assert reader.read(gradient(step=5)) is None
    assert reader.read(gradient(step=4)) is None
