"""``lightsplit advise`` on real tiny searches of the digits."""

import json
import tomllib

import pytest

from lightsplit.results import RunFolder

pytestmark = pytest.mark.slow

TABLE_TASK = """
import torch
from torch import nn
from lightsplit import Task

def task():
    def model():
        return nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2))
    example = lambda: (torch.zeros(2, 16), torch.zeros(2).long())
    return Task(model=model, head_until="0", tail_from="2", example=example, classes=2)
"""

OWN_TASK = """
import torch
from torch import nn
from lightsplit.tasks import TASKS, Task

def task():
    def model():
        layers = [nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 16)]
        return nn.Sequential(*layers, nn.ReLU(), nn.Linear(16, 10))
    return Task(model=model,
                example=lambda: (torch.rand(2, 1, 8, 8), torch.zeros(2).long()),
                data=TASKS.create("digits").data, head_until="2", tail_from="5",
                classes=10)
"""

BROKEN_TASK = """
import torch
from torch import nn
from lightsplit import Task

def task():
    def model():
        layers = [nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 2)]
        return nn.Sequential(*layers)
    def data(folder):
        raise ValueError("no disk")
    example = lambda: (torch.zeros(2, 1, 8, 8), torch.zeros(2).long())
    cut = {"head_until": "1", "tail_from": "3"}
    return Task(model=model, **cut, example=example, data=data, classes=2,
                sizes=(40, 20))
"""


@pytest.fixture(scope="module")
def tiny():
    options = ["--train-limit", 200, "--test-limit", 40, "--clients", 2]
    options += ["--cut", "l1", "--bits", 4, "--objective", "none"]
    return [*options, "--attack", "linear", "--images", 20, "--workers", 1]


@pytest.fixture
def searched(lightsplit, tiny, tmp_path):
    """Return the folder of a finished search, and what it said."""
    loose = ["--max-reidentification", 1, "--max-ssim-gain", 2]
    out = ["--out", tmp_path / "out", "--epochs", 1]
    return tmp_path / "out", lightsplit("advise", *tiny, *loose, *out).stdout


def test_a_search_advises_and_its_experiment_file_trains(
    lightsplit, searched, tiny, tmp_path
):
    folder, said = searched
    assert "train it: lightsplit train" in said
    names = {path.parent.name for path in folder.glob("*/record.json")}
    assert len(names) == 3
    advised = tomllib.loads((folder / "advice.toml").read_text())
    lightsplit("train", folder / "advice.toml", "--out", tmp_path / "run")
    record = RunFolder.open(tmp_path / "run").read_record()
    assert record["experiment"] == advised
    lines = json.loads((folder / "frontier.json").read_text())["settings"]
    (chosen,) = (line for line in lines if line["is_advised"])
    assert record["test_accuracy"] == chosen["value"]


def test_a_task_of_ones_own_is_advised_on(lightsplit, tmp_path):
    (tmp_path / "mine.py").write_text(OWN_TASK)
    words = ["--task", tmp_path / "mine.py", "--train-limit", 200, "--test-limit", 40]
    words += ["--clients", 2, "--epochs", 1, "--bits", 4, "--objective", "none"]
    words += ["--attack", "linear", "--images", 20, "--workers", 1]
    loose = ["--max-reidentification", 1, "--max-ssim-gain", 2]
    folder = tmp_path / "out"
    said = lightsplit("advise", *words, *loose, "--out", folder).stdout
    assert f"train it: lightsplit train {folder / 'advice.toml'}" in said
    assert (folder / "frontier.png").read_bytes().startswith(b"\x89PNG")
    advised = tomllib.loads((folder / "advice.toml").read_text())
    assert advised["task"]["name"].endswith("mine.py")
    cells = [json.loads(path.read_text()) for path in folder.glob("*/record.json")]
    assert advised in [cell["experiment"] for cell in cells]
    codecs = {cell["experiment"]["codec"]["name"] for cell in cells}
    assert codecs == {"raw", "none", "lightsplit-b"}


def test_resuming_repeats_no_cell_and_limits_may_change(
    lightsplit, searched, tiny, refused
):
    folder, _ = searched
    same = [*tiny, "--epochs", 1, "--out", folder]
    assert "--resume" in refused("advise", *same)
    times = {path: path.stat().st_mtime_ns for path in folder.glob("*/record.json")}
    (lost,) = (path for path in times if "lightsplit-b" in str(path))
    lost.unlink()  # as if it had been interrupted
    said = lightsplit(
        "advise", *same, "--max-ssim-gain", 0, "--resume", "--json"
    ).stdout
    assert json.loads(said)["limits"]["ssim_gain"] == 0
    assert lost.is_file()
    kept = {path: path.stat().st_mtime_ns for path in times if path != lost}
    assert all(times[path] == moment for path, moment in kept.items())


def test_limits_that_nothing_meets_leave_no_experiment_file(lightsplit, tmp_path):
    (tmp_path / "grid.toml").write_text(
        """
        [base]
        codec = "raw"
        train_limit = 200
        test_limit = 40
        epochs = 1
        [audit]
        attacks = ["linear"]
        images = 20
        """
    )
    given = ["--grid", tmp_path / "grid.toml", "--out", tmp_path / "out"]
    said = lightsplit("advise", *given, "--workers", 1, code=4).stdout
    assert "No setting of this search meets the limits." in said
    assert "of the images are named" in said
    assert "train it" not in said
    assert not (tmp_path / "out" / "advice.toml").exists()
    assert (tmp_path / "out" / "report.html").is_file()


def test_a_dry_run_shows_cells_and_client_costs_and_writes_nothing(
    lightsplit, tiny, tmp_path
):
    shown = lightsplit("advise", *tiny, "--dry-run", "--out", tmp_path / "out").stdout
    assert "3 cells" in shown
    assert "MFLOPs" in shown
    assert not (tmp_path / "out").exists()


def test_a_grid_file_is_searched_in_place_of_the_usual(lightsplit, refused, tmp_path):
    (tmp_path / "grid.toml").write_text(
        '[grid]\ncodec = ["none", "raw"]\n[audit]\nattacks = ["linear"]\n'
    )
    given = ["advise", "--grid", tmp_path / "grid.toml", "--dry-run"]
    assert "2 cells" in lightsplit(*given, "--epochs", 3).stdout
    assert "write --cut" in refused(*given, "--bits", 4)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--objective", "clas-codes"], "did you mean 'class-codes'?"),
        (["--max-reidentification", -1], "--max-reidentification must be"),
        (["--max-ssim-gain", -1], "--max-ssim-gain must be"),
        (["--max-client-flops", 1], "leaves no setting"),
        (["--max-accuracy-loss", -1], "--max-accuracy-loss must be"),
        (["--attack", "linaer"], "linear"),
        (["--budget", "huge"], "huge"),
        (["--weights", "nofile"], "nofile does not exist"),
        (["--dataset", "digit"], "digits"),
        (["--grid", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    refused, tmp_path, options, reason
):
    assert reason in refused("advise", "--out", tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


def test_a_task_whose_inputs_no_attack_can_read_is_refused(refused, tmp_path):
    (tmp_path / "rows.py").write_text(TABLE_TASK)
    out = ["--out", tmp_path / "out"]
    message = refused("advise", "--task", tmp_path / "rows.py", *out)
    assert "are not images" in message
    assert not (tmp_path / "out").exists()


def test_cells_that_fail_are_named_and_leave_nothing_to_judge(
    lightsplit, tiny, tmp_path
):
    (tmp_path / "broken.py").write_text(BROKEN_TASK)
    tiny = [*tiny[tiny.index("--bits") :], "--epochs", 1, "--out", tmp_path / "out"]
    task = ["--task", tmp_path / "broken.py", "--clients", 2]
    result = lightsplit("advise", *task, *tiny, code=1)
    assert "no disk" in result.stderr
    assert "can be judged" in result.stderr
    assert not (tmp_path / "out" / "report.html").exists()
