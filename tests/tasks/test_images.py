"""The built-in tasks: facts that must be those of the data and of the models."""

import pytest
import torch

from lightsplit.data import DATASETS
from lightsplit.errors import ConfigError
from lightsplit.models import CUTS, MODELS
from lightsplit.tasks import TASKS
from lightsplit.tasks.images import IMAGE_TASKS

every_task = pytest.mark.parametrize("facts", IMAGE_TASKS, ids=lambda t: t.name)


def test_every_dataset_is_a_task():
    assert [task.name for task in IMAGE_TASKS if task.name not in TASKS.names()] == []
    assert sorted(task.name for task in IMAGE_TASKS) == DATASETS.names()


def test_the_facts_of_the_embedded_dataset_are_those_of_its_data():
    task, digits = TASKS.create("digits"), DATASETS.create("digits")
    assert task.image_shape == digits.train.shape
    assert task.class_count == digits.classes
    assert task.sizes == (len(digits.train), len(digits.test))


def test_the_data_of_a_task_is_its_dataset(tmp_path):
    loaded = TASKS.create("digits").data(tmp_path)
    assert loaded.train.shape == (1, 8, 8)


@every_task
def test_a_task_is_its_dataset_with_a_model_of_the_zoo(facts):
    task = TASKS.create(facts.name)
    assert task.name == facts.name
    assert task.model_name in MODELS.names()
    assert task.cut == CUTS[task.model_name].default
    assert task.image_shape == facts.shape
    assert (task.monitored, task.direction) == ("accuracy", "max")
    names = dict(task.model().named_modules())
    assert {task.head_until, task.tail_from} <= names.keys()


@every_task
def test_the_model_fits_the_example(facts):
    TASKS.create(facts.name).check()


def test_the_model_starts_from_torchs_generator():
    task = TASKS.create("digits")
    torch.manual_seed(1)
    first = task.model().state_dict()
    torch.manual_seed(1)
    second = task.model().state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("cut", ["2", "4"])
def test_another_model_and_cut_can_be_chosen(cut):
    task = TASKS.create("mnist", model="mnistnet", cut=cut)
    assert (task.model_name, task.cut) == ("mnistnet", cut)


def test_cuts_differ_in_where_the_head_ends():
    ends = {TASKS.create("mnist", cut=cut).head_until for cut in ("l1", "l2")}
    assert len(ends) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"model": "resnet18"},
            r"resnet18 takes .*\(3, 32, 32\), but digits has \(1, 8, 8",
        ),
        ({"model": "resnet81"}, "unknown model 'resnet81'.*did you mean 'resnet18'"),
        ({"cut": "l9"}, "unknown cut 'l9'; known: l1, l2"),
    ],
)
def test_a_model_or_cut_that_does_not_fit_is_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        TASKS.create("digits", **options)
