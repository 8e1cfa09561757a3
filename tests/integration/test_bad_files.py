"""An owner's files that do not fit are refused in one sentence; nothing is sent.

The tasks are those of 'lightsplit new'; no server listens at the address.
"""

import numpy as np
import pytest
from PIL import Image

from lightsplit.tasks.starting import template


def picture(file, size=(28, 28)):
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.zeros(size, np.uint8)).save(file)


def spoiled_picture(folder):
    for name in ("negative", "positive"):
        for number in range(20):
            picture(folder / "train" / name / f"{number:02}.png")
            picture(folder / "test" / name / f"{number:02}.png")
    (folder / "train" / "positive" / "07.png").write_bytes(b"nothing")


def unknown_class(folder):
    spoiled_picture(folder)
    picture(folder / "train" / "positive" / "07.png")
    picture(folder / "train" / "unsure" / "00.png")


def mask_of_another_size(folder):
    for number in range(20):
        picture(folder / "image" / f"{number:02}.png", (64, 64))
        picture(folder / "label" / f"{number:02}.png", (64, 64))
    picture(folder / "label" / "07.png", (32, 64))


def table(*rows):
    def write(folder):
        for part in ("train", "test"):
            (folder / f"{part}.csv").write_text("\n".join(rows) + "\n")

    return write


TABLE, TEXT = template("table"), template("text")
LONG = TEXT.replace("truncate=True", "truncate=False").replace(
    "TOKENS = 64", "TOKENS = 3"
)
HEADER, ROW = "age,income,sex,label", "50,30,m,yes"
REVIEWS = ["text,label", *["fine film,positive"] * 20]


@pytest.mark.parametrize(
    ("task", "damage", "said"),
    [
        (template("images"), spoiled_picture, ("07.png",)),
        (template("images"), unknown_class, ("unsure",)),
        (template("images"), lambda _folder: None, ("mine",)),
        (template("segmentation"), mask_of_another_size, ("07.png",)),
        (TABLE, table("age,label", *["1,no"] * 20), ("train.csv", "'income'")),
        (TABLE, table(HEADER, *[ROW] * 20, "50,much,f,no"), ("train.csv", "much")),
        (TEXT, table("text", *["fine film"] * 20), ("train.csv", "label")),
        (LONG, table(*REVIEWS, "a very long film,positive"), ("train.csv", "4", "3")),
        (TEXT, table(*REVIEWS[:4]), ("mine", "16")),
    ],
)
def test_join_refuses_them_by_name(task, damage, said, run, tmp_path):
    (tmp_path / "task.py").write_text(task)
    mine, state = tmp_path / "mine", tmp_path / "state"
    mine.mkdir()
    damage(mine)
    files = ("--data", mine, "--state", state, "--name", "alice")
    settings = ("--task", tmp_path / "task.py", "--clients", 2, "--batch-size", 16)
    text = run("join", *settings, *files, "--address", "127.0.0.1:9", code=1)
    assert text.startswith("error: ")
    assert text.count("\n") == 1
    assert all(one in text for one in said)
    assert not state.exists()
