"""The walks of docs/guides, from an empty folder, by the commands on the page alone.

Where a page reads a published dataset, a small one of the same form stands in.
"""

import csv
import json

import numpy as np
import pytest
from lab.walks import Walk


@pytest.fixture
def walk(zygote, tmp_path):
    """Return what walks a guide; its data folder is DATA beside the empty one."""
    folder = tmp_path / "empty"
    folder.mkdir()

    def go(page):
        Walk(page, folder, zygote, {"LIGHTSPLIT_DATA": str(tmp_path / "DATA")}).go()
        return folder

    return go


def record_of(run):
    return json.loads((run / "record.json").read_text())


def rows_of(file):
    with file.open() as lines:
        return list(csv.DictReader(lines))


def check_card(run):
    assert "<html" in (run / "card.html").read_text()
    assert (run / "card.pdf").read_bytes().startswith(b"%PDF")


def test_three_banks_train_on_their_tables(walk):
    folder = walk("bank.md")
    record = record_of(folder / "runs" / "risk")
    assert record["test_auroc"] > 0.9
    assert record["clients"].keys() == {"north", "south", "west"}
    rows = rows_of(folder / "north.csv")
    assert len(rows) == 40
    assert {row["prediction"] for row in rows} <= {"benign", "malignant"}
    check_card(folder / "runs" / "risk")


@pytest.fixture
def pneumonia(tmp_path):
    """Write an archive of the form of PneumoniaMNIST; the ill are brighter."""
    draw, arrays = np.random.default_rng(0), {}
    for part, count in (("train", 120), ("val", 6), ("test", 30)):
        labels = draw.integers(0, 2, (count, 1), dtype=np.uint8)
        images = draw.integers(0, 120, (count, 28, 28), dtype=np.uint8)
        arrays[f"{part}_images"] = images + 100 * labels[:, :, None]
        arrays[f"{part}_labels"] = labels
    folder = tmp_path / "DATA" / "pneumoniamnist"
    folder.mkdir(parents=True)
    np.savez(folder / "pneumoniamnist.npz", **arrays)


def test_three_hospitals_train_on_their_folders(walk, pneumonia):
    folder = walk("hospital.md")
    record = record_of(folder / "runs" / "xray")
    assert len(record["client_figures"]) == 3
    assert record["code_bits"] == 32
    assert 0 <= record["test_auroc"] <= 1
    rows = rows_of(folder / "new.csv")
    assert [row["sample"] for row in rows] == [f"{n:05}.png" for n in range(6)]
    assert {row["prediction"] for row in rows} <= {"normal", "pneumonia"}
    check_card(folder / "runs" / "xray")
