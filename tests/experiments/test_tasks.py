"""The task of an experiment, cut where the experiment says."""

import os
from pathlib import Path

import pytest

from lightsplit.errors import ConfigError
from lightsplit.experiments import build, from_settings, make_experiment
from lightsplit.experiments.tables import SplitTable, TaskTable
from lightsplit.experiments.tasks import load_task, task_options

OWN = """
import torch
from torch import nn
from lightsplit.tasks import Task, TASKS

def task(width: int = 6):
    return Task(
        model=lambda: nn.Sequential(
            nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10)
        ),
        example=lambda: (torch.zeros(2, 1, 8, 8), torch.zeros(2).long()),
        data=TASKS.create("digits").data,
        head_until="1",
        tail_from="3",
        classes=10,
        {more}
    )
"""


@pytest.fixture
def own(tmp_path):
    """Return what writes a user's task and gives its name."""

    def write(more="", name="own.py"):
        (tmp_path / name).write_text(OWN.replace("{more}", more))
        return str(tmp_path / name)

    return write


def load(name="digits", split=None, **options):
    table = TaskTable.model_validate({"name": name, **options})
    return load_task(table, SplitTable.model_validate(split or {}))


def test_a_named_cut_is_the_split_tables():
    first, second = load(split={"cut": "l1"}), load(split={"cut": "l2"})
    assert (first.cut, second.cut) == ("l1", "l2")
    assert first.head_until != second.head_until


def test_modules_take_the_place_of_a_named_cut():
    task = load(split={"head_until": "conv1"})
    assert (task.head_until, task.tail_from) == ("conv1", load().tail_from)


def test_a_task_is_made_once():
    assert load().model is load().model


def test_options_of_the_task_are_those_of_its_function(own):
    assert task_options("digits") == {"model", "cut"}
    assert task_options(own()) == {"width"}
    assert load(own(), width=9).model()[1].out_features == 9


def test_a_users_own_task_has_no_named_cuts(own):
    with pytest.raises(
        ConfigError, match=r"has no named cuts; use head_until and tail"
    ):
        load(own(), split={"cut": "l1"})


def test_a_users_own_task_may_name_its_one_cut(own):
    name = own('cut="only", model_name="net"', "named.py")
    experiment = from_settings({"task": name, "codec": "raw"})
    assert experiment.split.cut == "only"
    assert make_experiment(experiment.tables()) == experiment


def test_a_users_own_task_is_trained_like_one_of_ours(own):
    settings = {"task": own(), "task.width": 12, "train_limit": 60, "max_steps": 2}
    experiment = from_settings({**settings, "clients": 2, "batch_size": 10})
    assert experiment.task.options == {"width": 12}
    job = build(experiment)
    list(job.trainer.run())
    assert job.codec.activation_size == 12
    assert job.trainer.progress.steps == 2


def test_a_task_file_that_was_changed_is_read_again(own):
    name = own('monitor="loss",')
    assert load(name).monitored == "loss"
    file = Path(own("name='x', metrics={}, codec_options={'raw': {}},"))
    os.utime(file, ns=(0, 1))
    assert load(name).codec_options == {"raw": {}}
