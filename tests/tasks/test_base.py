"""A task: its required fields and its derived facts."""

import dataclasses

import pytest
import torch
from torch import nn
from torchmetrics import MeanMetric
from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC
from torchmetrics.regression import MeanSquaredError

from lightsplit.errors import ConfigError
from lightsplit.nesting import repeated
from lightsplit.tasks import Task


def make_task(**changes):
    known = {
        "model": lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)),
        "example": lambda: (torch.zeros(2, 4), torch.zeros(2).long()),
        "name": "mine",
    }
    return Task(**{**known, **changes})


METRICS = {"accuracy": MulticlassAccuracy(3), "auroc": MulticlassAUROC(3)}


def test_a_task_that_fits_together_passes():
    make_task().check()
    make_task(metrics=METRICS, monitor="auroc").check()


def test_checking_a_task_draws_no_random_number_of_the_run():
    before = torch.get_rng_state()
    make_task().check()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_task_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        make_task().name = "other"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"model": nn.Linear(4, 3)(torch.zeros(4))},
            "model of mine must be a function",
        ),
        ({"example": 3}, "example of mine must be a function"),
        ({"loss": "mse"}, "loss of mine must be a function"),
        (
            {"example": lambda: torch.zeros(2, 4)},
            r"pair \(inputs, labels\), got Tensor",
        ),
        (
            {"example": lambda: (torch.zeros(2, 5), torch.zeros(2).long())},
            "the example of mine does not fit its model and loss: RuntimeError",
        ),
        (
            {"example": lambda: (torch.zeros(2, 4), torch.full((2,), 9))},
            "the example of mine does not fit its model and loss: IndexError",
        ),
        (
            {"loss": lambda output, _: output.sum(1)},
            "the loss of mine must return one number",
        ),
        ({"metrics": METRICS, "monitor": "auc"}, "metric to monitor 'auc'.*'auroc'"),
        ({"metrics": {"mean": MeanMetric()}}, "'mean' does not say whether higher"),
    ],
)
def test_a_task_that_does_not_fit_together_is_refused_in_one_sentence(changes, said):
    with pytest.raises(ConfigError, match=said) as refusal:
        make_task(**changes).check()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "monitored", "direction"),
    [
        ({}, "loss", "min"),
        ({"metrics": METRICS}, "accuracy", "max"),
        ({"metrics": METRICS, "monitor": "auroc"}, "auroc", "max"),
        ({"metrics": METRICS, "monitor": "loss"}, "loss", "min"),
        ({"metrics": {"mse": MeanSquaredError}}, "mse", "min"),
    ],
)
def test_the_monitored_metric_says_which_way_is_better(changes, monitored, direction):
    task = make_task(**changes)
    assert (task.monitored, task.direction) == (monitored, direction)


def test_metrics_are_new_and_empty_every_time():
    task = make_task(metrics=METRICS)
    first, second = task.make_metrics(), task.make_metrics()
    assert list(first) == list(METRICS)
    assert first["accuracy"] is not second["accuracy"]
    first["accuracy"].update(torch.tensor([1]), torch.tensor([1]))
    assert METRICS["accuracy"].update_count == 0


def test_the_shape_of_images_is_that_of_the_example():
    images = make_task(example=lambda: (torch.zeros(2, 3, 8, 9), None))
    assert images.image_shape == (3, 8, 9)
    assert images.example_inputs().shape == (2, 3, 8, 9)


@pytest.mark.parametrize("inputs", [torch.zeros(2, 4), {"image": torch.zeros(2)}])
def test_inputs_that_are_no_images_have_no_image_shape(inputs):
    task = make_task(example=lambda: (inputs, None))
    with pytest.raises(ConfigError, match="the inputs of mine are not images"):
        _ = task.image_shape


def test_the_number_of_classes_is_asked_for_only_where_there_are_classes():
    assert make_task(classes=3).class_count == 3
    with pytest.raises(ConfigError, match="mine does not say how many classes"):
        _ = make_task().class_count


def test_a_batch_of_any_nesting_is_repeated():
    batch = {"a": torch.tensor([1, 2]), "b": [torch.tensor([[3], [4]]), "text"]}
    more = repeated(batch, 5)
    assert more["a"].tolist() == [1, 2, 1, 2, 1]
    assert more["b"][0].tolist() == [[3], [4], [3], [4], [3]]
    assert more["b"][1] == "text"
    assert type(repeated((torch.zeros(1),), 2)) is tuple
    assert repeated(batch, 1)["a"].tolist() == [1]
