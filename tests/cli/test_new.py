import pytest


@pytest.mark.parametrize("kind", ["images", "segmentation", "table", "text"])
def test_a_new_task_says_what_to_do_next(lightsplit, tmp_path, kind):
    file = tmp_path / "my_task.py"
    result = lightsplit("new", file, "--kind", kind)
    assert "def task()" in file.read_text()
    assert f"lightsplit join --task {file}" in result.stdout


def test_a_file_is_not_overwritten(refused, tmp_path):
    file = tmp_path / "my_task.py"
    file.write_text("mine")
    assert "exists already" in refused("new", file)
    assert file.read_text() == "mine"


def test_another_suffix_is_refused(refused, tmp_path):
    assert "Python file" in refused("new", tmp_path / "task.txt")


def test_a_folder_that_does_not_fit_writes_nothing(refused, tmp_path):
    file = tmp_path / "my_task.py"
    assert "two or more subfolders" in refused("new", file, "--data", tmp_path)
    assert not file.exists()


def test_columns_that_are_not_used_are_named(lightsplit, tmp_path):
    rows = [f"{n},name {n},{n % 2}" for n in range(30)]
    (tmp_path / "train.csv").write_text("\n".join(["age,who,ill", *rows]))
    result = lightsplit(
        "new", tmp_path / "my.py", "--kind", "table", "--data", tmp_path
    )
    assert "left out: who (30 different texts)" in result.stdout
