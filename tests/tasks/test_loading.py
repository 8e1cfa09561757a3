"""A user's own task: a file or a module, found, imported and checked."""

import sys

import pytest

from lightsplit.errors import ConfigError
from lightsplit.tasks import Task, find_task, is_own, make_task

GOOD = """
import torch
from torch import nn
from lightsplit.tasks import Task

def task(width: int = 6):
    return Task(
        model=lambda: nn.Sequential(
            nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 3)
        ),
        example=lambda: (torch.zeros(2, 4), torch.zeros(2).long()),
        head_until="0",
        tail_from="2",
    )

def other():
    return task(width=8)

def broken():
    raise OSError("no such disk")

def unfit():
    made = task()
    return Task(model=made.model, example=lambda: (torch.zeros(2, 5), None))

def nothing():
    return {"model": None}

number = 3
"""


@pytest.fixture
def write(tmp_path):
    """Return what writes a file and gives its path as text."""

    def write(text=GOOD, name="my_task.py"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Put a package with a module of tasks on the path."""
    folder = tmp_path / "their_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "tasks.py").write_text(GOOD)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "their_package.tasks"
    for name in ("their_package", "their_package.tasks"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("digits", False),
        ("my_task.py", True),
        ("folder/my_task.py:other", True),
        ("package.module:name", True),
    ],
)
def test_a_file_or_a_module_is_a_users_own(name, expected):
    assert is_own(name) == expected


def test_the_function_task_of_a_file_makes_the_task(write):
    made = make_task(write(), {})
    assert isinstance(made, Task)
    assert made.name == "my_task"
    assert made.model()[0].out_features == 6


def test_another_function_can_be_named(write):
    made = make_task(write() + ":other", {})
    assert made.name == "my_task:other"
    assert made.model()[0].out_features == 8


def test_a_function_of_an_installed_module_can_be_named(package):
    made = make_task(f"{package}:other", {})
    assert made.name == "their_package.tasks:other"
    assert make_task(f"{package}:task", {"width": 5}).model()[0].out_features == 5


def test_options_are_those_of_the_function(write):
    assert make_task(write(), {"width": 9}).model()[0].out_features == 9
    with pytest.raises(ConfigError, match=r"no option 'widht'.*did you mean 'width'"):
        make_task(write(), {"widht": 9})
    with pytest.raises(ConfigError, match=r"'width' .* must be a whole number"):
        make_task(write(), {"width": "w"})


def test_a_file_may_import_its_neighbours(write):
    write("WIDTH = 7\n", "neighbour_of_my_task.py")
    text = GOOD.replace(
        "import torch\n", "import torch\nimport neighbour_of_my_task\n", 1
    )
    path = list(sys.path)
    make_task(write(text), {})
    assert sys.path == path
    sys.modules.pop("neighbour_of_my_task")


def test_a_registered_task_keeps_its_name():
    assert make_task("digits", {"cut": "l1"}).name == "digits"


def test_an_unknown_task_is_refused_with_the_nearest():
    with pytest.raises(
        ConfigError, match=r"unknown task 'digit'.*did you mean 'digits'"
    ):
        find_task("digit")


@pytest.mark.parametrize(
    ("text", "function", "said"),
    [
        (
            "import nowhere_to_be_found",
            "",
            "cannot import .*my_task.py: ModuleNotFound",
        ),
        ("def task(:", "", "cannot import the task .*my_task.py: SyntaxError"),
        ("1 / 0", "", "cannot import the task .*my_task.py: ZeroDivisionError"),
        ("x = 1", "", "my_task.py has no function 'task' that makes a task"),
        (GOOD, ":missing", "my_task.py has no function 'missing'"),
        (GOOD, ":number", "'number' in .* must be a function .*, got int"),
        (GOOD, ":nothing", "nothing must be a lightsplit.Task, got dict"),
        (GOOD, ":broken", "broken cannot be made: OSError: no such disk"),
        (GOOD, ":unfit", "the example of my_task:unfit does not fit its model"),
    ],
)
def test_a_file_that_makes_no_task_is_refused_in_one_sentence(
    write, text, function, said
):
    with pytest.raises(ConfigError, match=said) as refusal:
        make_task(write(text) + function, {})
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.py", "there is no task file .*nowhere.py"),
        ("nowhere.py:task", "there is no task file .*nowhere.py"),
        (
            "no.such.module:task",
            "cannot import the task no.such.module: ModuleNotFound",
        ),
    ],
)
def test_a_missing_task_is_refused_in_one_sentence(name, said):
    with pytest.raises(ConfigError, match=said) as refusal:
        make_task(name, {})
    assert "\n" not in str(refusal.value)
