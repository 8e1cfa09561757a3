import numpy as np
import pytest
from PIL import Image

from lightsplit.errors import ConfigError, DataError
from lightsplit.tasks import make_task
from lightsplit.tasks.starting import KINDS, look_at, template


def made(tmp_path, text):
    file = tmp_path / "my_task.py"
    file.write_text(text)
    return make_task(str(file), {})


def pictures(folder, shape=(12, 8)):
    folder.mkdir(parents=True)
    for number in range(3):
        Image.fromarray(np.zeros(shape, dtype=np.uint8)).save(folder / f"{number}.png")


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_is_a_task(tmp_path, kind):
    task = made(tmp_path, template(kind))  # make_task runs the example through it
    assert task.data is not None
    assert task.form is not None


def test_settings_replace_the_templates(tmp_path):
    text = template("images", {"CLASSES": ("a", "b", "c"), "CHANNELS": 3})
    assert "CHANNELS = 3  # 1 for grey, 3 for colour" in text
    assert made(tmp_path, text).classes == 3
    with pytest.raises(ConfigError, match="no setting NOTHING"):
        template("images", {"NOTHING": 1})


def test_image_folders_give_classes_and_size(tmp_path):
    pictures(tmp_path / "train" / "ill")
    pictures(tmp_path / "train" / "well")
    found = look_at("images", tmp_path)
    assert found == {"CLASSES": ("ill", "well"), "SIZE": (12, 8)}
    with pytest.raises(DataError, match="two or more subfolders"):
        look_at("images", tmp_path / "train" / "ill")


def test_masks_give_a_size_that_the_network_can_halve_twice(tmp_path):
    pictures(tmp_path / "image", (15, 9))
    assert look_at("segmentation", tmp_path) == {"SIZE": (12, 8)}


def test_tables_give_columns(tmp_path):
    rows = ["age,sex,ill", "40,f,no", "60,m,yes", ",m,yes"]
    (tmp_path / "train.csv").write_text("\n".join(rows))
    found = look_at("table", tmp_path)
    assert found["LABEL"] == "ill"
    assert found["NUMBERS"] == {"age": (50.0, 10.0)}
    assert found["CATEGORIES"] == {"sex": ("f", "m")}
    assert found["OPTIONAL"] == ("age",)
    task = made(tmp_path, template("table", found))
    train, _ = task.data(_with_test(tmp_path))
    assert len(train) == 3


def _with_test(folder):
    (folder / "test.csv").write_text((folder / "train.csv").read_text())
    return folder


def test_texts_give_classes(tmp_path):
    (tmp_path / "train.tsv").write_text("text\tlabel\nfine\tgood\nawful\tbad\n")
    assert look_at("text", tmp_path) == {"CLASSES": ("bad", "good")}


@pytest.mark.parametrize("kind", ["table", "text", "segmentation"])
def test_an_empty_folder_is_refused(tmp_path, kind):
    with pytest.raises(DataError):
        look_at(kind, tmp_path)
