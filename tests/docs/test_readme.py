"""The README's code runs as it is written."""

import pytest
import torch

from lightsplit.cli.app import main
from lightsplit.experiments import make_experiment, read_experiment
from lightsplit.results import RunFolder

README = "README.md"


@pytest.mark.slow
def test_the_loop_trains_both_ends_and_predicts(blocks):
    names = {}
    code = blocks(README)[0]
    before, _, loop = code.partition("for images, labels in")
    exec(before, names)  # noqa: S102
    backbone = names["server"].server.side.modules["backbone"]
    first = [p.detach().clone() for p in backbone.parameters()]
    exec(f"for images, labels in{loop}", names)  # noqa: S102
    assert names["logits"].shape == (32, 10)
    assert all(p.grad is not None for p in names["model"].parameters())
    assert not any(map(torch.equal, first, backbone.parameters()))
    assert torch.isfinite(names["loss"])


def test_the_experiment_file_is_one(blocks, tmp_path):
    file = tmp_path / "experiment.toml"
    file.write_text(blocks(README, "toml")[0])
    experiment = make_experiment(read_experiment(file))
    assert experiment.codec.options["ratio"] == 8
    assert experiment.objective["wcc"].weight == 0.01


@pytest.mark.slow
def test_the_task_file_is_short_and_trains(blocks, tmp_path, monkeypatch):
    task = blocks(README)[1]
    assert len(task.strip().splitlines()) <= 25
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_task.py").write_text(task)
    command = "train --task my_task.py --data-dir my_folder --ratio 4"
    options = "--set task.width=64 --epochs 1 --out run --json"
    monkeypatch.setattr("sys.argv", ["lightsplit", *f"{command} {options}".split()])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code in (0, None)
    record = RunFolder(tmp_path / "run").read_record()
    assert record["activation_size"] == 64
    assert 0 <= record["test_accuracy"] <= 1
