"""A user's task whose model has two tensors at each cut."""

import pytest

from lightsplit.errors import ConfigError

TASK = """
import torch
from torch import nn
from lightsplit.tasks import TASKS, Task

class Pair(nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.a, self.b = nn.Linear(first, 16), nn.Linear(second, 8)

    def forward(self, x, y):
        return self.a(x).relu(), self.b(y).relu()

class Sum(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 10), nn.Linear(8, 10)

    def forward(self, x, y):
        return self.a(x) + self.b(y)

class Streams(nn.Module):
    def __init__(self):
        super().__init__()
        self.start, self.middle, self.end = Pair(64, 64), Pair(16, 8), Sum()

    def forward(self, x):
        x = x.flatten(1)
        return self.end(*self.middle(*self.start(x, x)))

def task():
    return Task(
        model=Streams,
        example=lambda: (torch.rand(2, 1, 8, 8), torch.zeros(2).long()),
        data=TASKS.create("digits").data,
        head_until="start",
        tail_from="end",
        classes=10,
    )
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own.py").write_text(TASK)
    return str(tmp_path / "own.py")


@pytest.mark.slow
@pytest.mark.parametrize("output_codec", ["raw", "low-rank"])
def test_a_run_trains_and_counts_them_as_one(own, finish, output_codec):
    settings = {"codec": "lightsplit-f", "ratio": 2, "output_codec": output_codec}
    job = finish(task=own, epochs=1, **settings).job
    assert job.contract.activation_shape == (24,)
    assert job.contract.output_shape == (24,)
    assert job.contract.code_size == 12


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"codec": "learned-1x1"}, "2 tensors cross the front cut: tensor 1 of 'st"),
        (
            {"output_codec": "linear", "output_size": 4},
            "2 tensors cross the back cut: tensor 1 of 'mid",
        ),
    ],
)
def test_what_carries_one_tensor_refuses_two_by_name(own, make_job, settings, reason):
    with pytest.raises(ConfigError, match=reason):
        make_job(task=own, **settings)
