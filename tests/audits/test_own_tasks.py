"""Runs of a user's own tasks, trained in one process and audited."""

import csv
import importlib.util
import stat
from pathlib import Path

import pytest

from lightsplit.audits import AuditOptions, attack, is_attacked
from lightsplit.errors import AuditError
from lightsplit.experiments import from_settings, run
from lightsplit.results import RunFolder, main_leakage

pytestmark = pytest.mark.slow

OWN = Path(__file__).parent / "own"
spec = importlib.util.spec_from_file_location("own_files", OWN / "files.py")
files = importlib.util.module_from_spec(spec)
spec.loader.exec_module(files)
QUICK = "decoder:steps=150,most_steps=300,width=16"


def trained(tmp_path, task, **settings):
    folder = RunFolder.create(tmp_path / "run")
    common = {"clients": 2, "batch_size": 16, "epochs": 2}
    experiment = from_settings(
        {"task": f"{OWN / 'tasks.py'}:{task}", "codec": "raw", **common, **settings}
    )
    run(experiment, folder, data_dir=tmp_path / "mine")
    return folder


def audited(folder, tmp_path, quiet, *attacks, **options):
    chosen = AuditOptions(attacks=attacks, images=24, **options)
    entries = attack(folder, chosen, watch=quiet, data_dir=tmp_path / "mine")
    assert is_attacked(folder.read_record(), chosen)
    return {entry["attack"]: entry for entry in entries if "columns" in entry} or {
        entry["attack"]: entry for entry in entries if "message" not in entry
    }


def test_a_table_is_audited_column_by_column(tmp_path, quiet):
    files.write_table(tmp_path / "mine")
    folder = trained(tmp_path, "table")
    found = audited(folder, tmp_path, quiet, "linear", "row-inversion")
    trivial = {"column-mean", "class-mean", "nearest-known"}
    assert set(found) == {"linear", "row-inversion"} | trivial
    linear = found["linear"]
    assert linear["truth"] == "table"
    assert linear["beats_trivial"] is True
    assert linear["metrics"]["r2"]["mean"] > 0.9
    assert linear["metrics"]["reidentification"]["mean"] > 0.9
    columns = {one["column"]: one for one in linear["columns"]}
    assert list(columns) == ["age", "weight", "pulse", "sex"]
    assert columns["age"]["error"] < 5 < columns["age"]["error_of_mean"] < 30
    assert columns["sex"]["accuracy"] > columns["sex"]["accuracy_of_most_frequent"]
    blind = {one["column"]: one for one in found["column-mean"]["columns"]}
    assert blind["age"]["r2"] < 0.1
    assert main_leakage(folder.read_record())["r2"]["mean"] > 0.9


def test_a_sheet_shows_originals_beside_guesses_to_the_owner_alone(tmp_path, quiet):
    files.write_table(tmp_path / "mine")
    folder = trained(tmp_path, "table")
    entry = audited(folder, tmp_path, quiet, "linear")["linear"]
    sheet = folder.images / entry["sheet"]["file"]
    assert stat.S_IMODE(sheet.stat().st_mode) == 0o600
    with sheet.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["which"] for line in lines[:2]] == ["original", "guess"]
    assert 0 < float(lines[0]["age"]) < 110
    assert lines[0]["sex"] in "fm"
    assert abs(float(lines[0]["age"]) - float(lines[1]["age"])) < 20
    assert not (folder.images / "audit.png").exists()


def test_texts_are_audited_token_by_token(tmp_path, quiet):
    files.write_texts(tmp_path / "mine")
    folder = trained(tmp_path, "text")
    found = audited(folder, tmp_path, quiet, QUICK)
    trivial = {"frequent-token", "frequent-by-place", "unigram", "nearest-known"}
    assert set(found) == {"decoder"} | trivial
    assert found["decoder"]["truth"] == "text"
    assert found["decoder"]["beats_trivial"] is True
    assert found["decoder"]["metrics"]["token_accuracy"]["mean"] > 0.9
    assert found["unigram"]["metrics"]["token_f1"]["mean"] < 0.5
    sheet = folder.images / found["decoder"]["sheet"]["file"]
    with sheet.open(newline="") as file:
        first = next(csv.DictReader(file))
    assert set(map(int, first["original"].split())) <= set(range(1, 24))


def test_an_attack_of_another_kind_is_refused_by_name(tmp_path, quiet):
    files.write_table(tmp_path / "mine")
    folder = trained(tmp_path, "table")
    with pytest.raises(AuditError, match="whitebox works on image tasks"):
        audited(folder, tmp_path, quiet, "whitebox")


def test_labels_that_are_not_classes_leave_out_what_needs_classes(tmp_path, quiet):
    (tmp_path / "mine").mkdir()
    folder = trained(tmp_path, "regression")
    found = audited(folder, tmp_path, quiet, "linear")
    assert set(found) == {"column-mean", "nearest-known", "linear"}
    with pytest.raises(
        AuditError, match="classes, but the labels of this task are not"
    ):
        audited(folder, tmp_path, quiet, "label-kmeans")
