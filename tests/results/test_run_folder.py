import json
import math

import pytest

from lightsplit.errors import RunError
from lightsplit.results import RunFolder, finite


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "run")


def test_a_new_folder_is_made_with_its_parents(tmp_path):
    assert RunFolder.create(tmp_path / "runs" / "a").path.is_dir()


def test_an_empty_folder_is_accepted(folder):
    assert RunFolder.create(folder.path).path == folder.path


def test_a_folder_that_holds_anything_is_refused_and_left_alone(folder):
    (folder.path / "note").write_text("mine")
    with pytest.raises(RunError, match=r"not an empty folder.*--resume"):
        RunFolder.create(folder.path)
    assert [path.name for path in folder.path.iterdir()] == ["note"]


@pytest.mark.parametrize("place", ["file", "file/run"])
def test_a_file_in_the_way_is_refused(tmp_path, place):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match=place):
        RunFolder.create(tmp_path / place)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_run_that_was_begun_can_be_opened(folder):
    folder.write_experiment("seed = 1\n")
    assert RunFolder.open(folder.path).experiment_file.read_text() == "seed = 1\n"


def test_a_folder_without_an_experiment_is_not_a_run(folder):
    with pytest.raises(RunError, match="is not a run"):
        RunFolder.open(folder.path)


def test_the_record_reads_back_the_same(folder):
    record = {"test_accuracy": 0.5, "bytes": {"total": 7}, "name": "λ"}
    folder.write_record(record)
    assert folder.read_record() == record


def test_an_unfinished_run_has_no_record(folder):
    with pytest.raises(RunError, match="not finished"):
        folder.read_record()


def test_a_damaged_record_is_named(folder):
    folder.record_file.write_text('{"half": ')
    with pytest.raises(RunError, match=r"record\.json is damaged"):
        folder.read_record()


def test_metrics_are_one_line_each_and_begin_again_when_replaced(folder):
    folder.write_metrics([{"step": 1}, {"step": 2}])
    folder.append_metrics({"step": 3})
    lines = folder.metrics_file.read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3]
    folder.write_metrics([{"step": 1}])
    assert folder.metrics_file.read_text() == '{"step": 1}\n'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_does_not_have_is_null(folder, value):
    folder.write_record({"losses": [value, 1.0]})
    folder.append_metrics({"loss": value})
    assert folder.read_record() == {"losses": [None, 1.0]}
    assert folder.metrics_file.read_text() == '{"loss": null}\n'


def test_finite_values_are_left_alone():
    value = {"a": [1, 2.5, None, "nan"], "b": {"c": True}}
    assert finite(value) == value
