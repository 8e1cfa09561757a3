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


@pytest.mark.parametrize("kind", [*KINDS, "numbers"])
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
    assert found.settings == {"CLASSES": ("ill", "well"), "SIZE": (12, 8)}
    with pytest.raises(DataError, match="two or more subfolders"):
        look_at("images", tmp_path / "train" / "ill")


def test_masks_give_a_size_that_the_network_can_halve_twice(tmp_path):
    pictures(tmp_path / "image", (15, 9))
    assert look_at("segmentation", tmp_path).settings == {"SIZE": (12, 8)}


def test_tables_give_columns(tmp_path):
    rows = ["age,sex,ill", "40,f,no", "60,m,yes", "NA,m,yes"]
    (tmp_path / "train.csv").write_text("\n".join(rows))
    name, found, left_out = look_at("table", tmp_path)
    assert (name, left_out) == ("table", {})
    assert found["LABEL"] == "ill"
    assert found["NUMBERS"] == {"age": (50.0, 10.0)}
    assert found["CATEGORIES"] == {"sex": ("f", "m")}
    assert found["OPTIONAL"] == ("age",)
    assert found["MISSING"] == ("NA",)
    task = made(tmp_path, template("table", found))
    train, _ = task.data(_with_test(tmp_path))
    assert len(train) == 3


def _with_test(folder):
    (folder / "test.csv").write_text((folder / "train.csv").read_text())
    return folder


def test_texts_give_classes(tmp_path):
    (tmp_path / "train.tsv").write_text("text\tlabel\nfine\tgood\nawful\tbad\n")
    assert look_at("text", tmp_path).settings == {"CLASSES": ("bad", "good")}


def test_a_label_of_many_numbers_is_a_number(tmp_path):
    rows = [f"{n},name {n},{n % 3}e-6,{n * 10}" for n in range(40)]
    (tmp_path / "data.csv").write_text("\n".join(["id,who,tiny,price", *rows]))
    name, settings, left_out = look_at("table", tmp_path)
    assert name == "numbers"
    assert settings["SCALE"] == (195.0, 115.434)
    assert settings["NUMBERS"]["tiny"] == (9.75e-07, 8.21203e-07)  # six digits, not 0
    assert left_out == {"who": "40 different texts"}
    task = made(tmp_path, template(name, settings))
    train, test = task.data(tmp_path)
    assert (len(train), len(test)) == (32, 8)
    inputs, labels = task.example()
    assert task.loss(task.model()(inputs), labels).isfinite()


def test_a_long_setting_is_written_in_lines(tmp_path):
    columns = {f"column {n}": (0.0, 1.0) for n in range(30)}
    text = template("table", {"NUMBERS": columns})
    assert max(map(len, text.splitlines())) <= 100
    assert made(tmp_path, text).form.numbers == columns


def test_new_samples_are_read_where_there_are_some(tmp_path):
    columns = {"NUMBERS": {"age": (0.0, 1.0)}, "CATEGORIES": {}}
    rows, texts = made(tmp_path, template("table", columns)), template("text")
    assert rows.new_data(tmp_path) is None
    (tmp_path / "new.csv").write_text("age,text\n40,fine\n")
    assert rows.new_data(tmp_path).tolist() == [[40.0]]
    assert len(made(tmp_path, texts).new_data(tmp_path)) == 1
    masks = made(tmp_path, template("segmentation"))
    pictures(tmp_path / "image")
    assert masks.new_data(tmp_path) is None
    assert len(masks.new_data(tmp_path / "image")) == 3


@pytest.mark.parametrize("kind", ["table", "text", "segmentation"])
def test_an_empty_folder_is_refused(tmp_path, kind):
    with pytest.raises(DataError):
        look_at(kind, tmp_path)
