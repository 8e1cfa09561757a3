"""The tasks on the page can be trained."""

import json
import re
from dataclasses import fields

import pytest

from lightsplit import Task
from lightsplit.experiments import build, from_settings

PAGE = "docs/tasks.md"
EXPECTED = {
    "images.py": ("auroc", {"loss", "accuracy", "auroc"}),
    "prices.py": ("r2", {"loss", "mae", "r2"}),
    "masks.py": ("iou", {"loss", "iou"}),
    "findings.py": ("wrong", {"loss", "precision", "wrong"}),
}


@pytest.mark.parametrize("number", range(4))
def test_a_task_on_the_page_trains_and_is_measured(blocks, tmp_path, number):
    code = blocks(PAGE)[number]
    name = code.splitlines()[0].removeprefix("# ")
    (tmp_path / name).write_text(code)
    job = build(
        from_settings(
            {"task": str(tmp_path / name), "ratio": 4, "clients": 2, "epochs": 1}
        )
    )
    list(job.trainer.run())
    monitor, figures = EXPECTED[name]
    (line,) = job.trainer.progress.history
    assert job.trainer.state.monitor.name == monitor
    assert {key[5:] for key in line if key.startswith("test_")} == figures
    json.dumps(line)


def test_several_labels_are_learned_and_the_least_wrong_is_the_best(blocks, tmp_path):
    (tmp_path / "findings.py").write_text(blocks(PAGE)[3])
    settings = {"clients": 2, "epochs": 8, "batch_size": 10, "lr": 0.01}
    job = build(from_settings({"task": str(tmp_path / "findings.py"), **settings}))
    list(job.trainer.run())
    figures = [line["test_wrong"] for line in job.trainer.progress.history]
    assert figures[-1] < figures[0] / 1.5
    assert job.trainer.progress.best == min(figures)


def test_the_table_has_every_field_of_a_task(text):
    rows = re.findall(r"^\| (`.*?`) \|", text(PAGE), re.MULTILINE)
    shown = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    own = {field.name for field in fields(Task)} - {"name"}  # that of the file
    assert own <= shown


def test_the_page_has_no_other_code(blocks):
    assert len(blocks(PAGE)) == len(EXPECTED)
