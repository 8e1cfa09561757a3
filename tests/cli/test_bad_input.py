"""Bad input ends in one sentence and exit code 1, and leaves nothing behind."""

import pytest

from lightsplit.runtime import Secret

HEAD = """
import torch
from torch import nn
from lightsplit import Task

def model():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))

def example():
    return torch.zeros(2, 4), torch.zeros(2).long()

def fail(*_):
    raise FileNotFoundError("no such folder")

def task():
    return Task(FIELDS)
"""
WHOLE = {"model": "model", "example": "example", "data": "fail"}
WHOLE |= {"head_until": '"0"', "tail_from": '"2"'}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folder that commands run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(place):
    """Return what writes a task whose fields are changed or left out."""

    def write(source=HEAD, without=(), **changes):
        fields = {k: v for k, v in {**WHOLE, **changes}.items() if k not in without}
        text = ", ".join(f"{name}={value}" for name, value in fields.items())
        (place / "my_task.py").write_text(source.replace("FIELDS", text))
        return "my_task.py"

    return write


@pytest.fixture
def refused_cleanly(refused, place):
    """Return what runs a command that must say one line and write nothing."""

    def call(*words):
        before = {path: path.stat().st_mtime_ns for path in _files(place)}
        said = refused(*words)
        assert "\n" not in said
        after = {path: path.stat().st_mtime_ns for path in _files(place)}
        assert after == before
        return said

    return call


def _files(place):
    return [path for path in place.rglob("*") if "__pycache__" not in path.parts]


COMMANDS = [("train",), ("verify",), ("cost", "--samples", 64), ("serve", "--insecure")]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def task(:", "cannot import the task my_task.py: SyntaxError"),
        ("import not_there", "ModuleNotFoundError: No module named 'not_there'"),
        ("1 / 0", "cannot import the task my_task.py: ZeroDivisionError"),
        ("x = 3", "my_task.py has no function 'task' that makes a task"),
        ("task = 3", "'task' in my_task.py must be a function that returns a Task"),
        ("def task(): return 3", "must be a lightsplit.Task, got int"),
        ("def task(): return {}['a']", "cannot be made: KeyError: 'a'"),
    ],
)
def test_a_task_file_that_cannot_be_used(command, source, said, write, refused_cleanly):
    assert said in refused_cleanly(*command, "--task", write(source))


@pytest.mark.parametrize("field", ["model", "example"])
def test_a_task_without_a_field(field, write, refused_cleanly):
    said = refused_cleanly("train", "--task", write(without=[field]))
    assert f"missing 1 required positional argument: '{field}'" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"example": "lambda: (torch.zeros(2, 5), torch.zeros(2).long())"},
            "the example of my_task does not fit its model and loss: RuntimeError",
        ),
        (
            {"example": "lambda: (torch.zeros(2, 4), torch.zeros(3).long())"},
            "the example of my_task does not fit its model and loss: ValueError",
        ),
        ({"example": "lambda: torch.zeros(2, 4)"}, "must return a pair"),
        (
            {"example": "fail"},
            "the example of my_task cannot be made: FileNotFoundError",
        ),
        ({"model": "fail"}, "does not fit its model and loss: FileNotFoundError"),
        ({"model": "3"}, "model of my_task must be a function or a class"),
        ({"loss": "lambda output, _labels: output"}, "must return one number"),
        ({"monitor": '"acuracy"'}, "unknown metric to monitor 'acuracy'"),
        (
            {"metrics": "{'mine': fail}"},
            "the metric 'mine' of my_task cannot be made: FileNotFoundError",
        ),
        ({"data": "None"}, "my_task has no data function to train with"),
        (
            {"data": "fail"},
            "the data of my_task cannot be loaded: FileNotFoundError: no such folder",
        ),
        ({"data": "lambda _folder: 3"}, "must return a training and a test set"),
        ({"data": "lambda _folder: (3, 4)"}, "expected a dataset with a length"),
    ],
    ids=str,
)
def test_a_task_that_does_not_fit_together(changes, said, write, refused_cleanly):
    assert said in refused_cleanly("train", "--task", write(**changes))


@pytest.mark.parametrize(
    ("head_until", "said"),
    [('"9"', "head_until='9'"), ("None", "does not say where to cut")],
)
@pytest.mark.parametrize("command", COMMANDS[1:], ids=lambda words: words[0])
def test_a_cut_that_cannot_be(command, head_until, said, write, refused_cleanly):
    task = write(head_until=head_until)
    assert said in refused_cleanly(*command, "--task", task)


def test_a_task_file_that_is_not_there(refused_cleanly):
    said = refused_cleanly("train", "--task", "nothing.py")
    assert "there is no task file" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--objective", "wc:0.1"), "unknown objective 'wc'; known: "),
        (("--objective", "wcc:much"), "expected NAME, NAME:WEIGHT or"),
        (("--objective", "wcc:-1"), "greater than or equal to 0, got -1.0"),
        (("--objective", "wcc:0.1,power=2"), "objective 'wcc' has no option 'power'"),
        (("--codec", "topk:ration=8"), "has no option 'ration'"),
        (("--codec", "topkk"), "did you mean 'topk'?"),
        (("--set", "codec.ration=8"), "has no option 'ration'"),
        (("--set", "training.epoch=8"), "did you mean 'epochs'?"),
        (("--set", "trainin.epochs=8"), "did you mean 'training'?"),
        (("--ratio", "0"), "ratio must be at least 1, got 0.0"),
        (("--alpha", "0"), "owners.alpha: input should be greater than 0, got 0"),
        (("--turn-steps", "0"), "training.turn_steps: input should be greater"),
        (("--clients", "0"), "owners.clients: input should be greater"),
        (("--batch-size", "1"), "training.batch_size: input should be greater"),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["train", "cost"])
def test_a_setting_that_cannot_be(command, options, said, refused_cleanly):
    assert said in refused_cleanly(command, *options)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ratio = 8", "instead of ratio = 8 write [codec] ratio = 8"),
        ('dataset = "mnist"', 'write [task] name = "mnist"'),
        ("wcc = 0.1", "write [objective.wcc] weight = 0.1"),
        ('detector = "contra"', "write [detector.contra]"),
        ("nonsense = 1", "expected a table such as [codec], got nonsense = 1"),
    ],
)
def test_an_experiment_file_of_the_old_form(old, new, place, refused_cleanly):
    (place / "old.toml").write_text(f"{old}\n")
    said = refused_cleanly("train", "old.toml")
    assert said.startswith("error: old.toml: an experiment file has tables")
    assert new in said


@pytest.mark.parametrize("command", ["join", "predict"])
def test_a_secret_that_others_can_read(command, place, refused_cleanly):
    Secret(1).save(place / "mine.secret")
    (place / "mine.secret").chmod(0o644)
    said = refused_cleanly(command, "--clients", 1, "--secret", "mine.secret")
    assert "mine.secret" in said
    assert "chmod 600" in said
