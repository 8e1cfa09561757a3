"""Grids across runs: the same images in every column, or no grid."""

import csv
import io
import shutil

import pytest
from PIL import Image

from lightsplit.attacks import silent
from lightsplit.audits import AuditOptions, audit
from lightsplit.reports import find_runs, make_report, write_files, write_page
from lightsplit.results import RunFolder, tensors

pytestmark = pytest.mark.slow

LINEAR = AuditOptions(attacks=("linear",), images=24)


@pytest.fixture(scope="module")
def attacked(real_runs, tmp_path_factory):
    """Return a folder of audited runs; not to be changed."""
    base = tmp_path_factory.mktemp("attacked") / "runs"
    shutil.copytree(real_runs, base)
    for name in ("raw", "fixed-8", "compact"):
        audit(RunFolder.open(base / name), LINEAR, watch=lambda _: silent)
    return base


@pytest.fixture
def own(attacked, tmp_path):
    """Return a copy of it, to change."""
    return shutil.copytree(attacked, tmp_path / "runs")


def comparisons_in(base):
    return make_report(*find_runs([base])).comparisons


def change(folder, **changes):
    """Change the entries of attacks that are not trivial."""
    record = folder.read_record()
    for entry in record["audit"]:
        if entry["kind"] != "trivial":
            entry.update(changes)
    folder.write_record(record)


def test_runs_with_the_same_targets_stand_in_one_grid(attacked):
    (grid,) = comparisons_in(attacked)
    assert grid.attack == "linear"
    assert grid.labels == ["raw", "lightsplit-f 8x", "lightsplit-f 8x wcc=0.01"]
    assert [len(row.reconstructions) for row in grid.rows] == [20] * 3


def test_a_row_has_the_figures_of_the_shown_images_and_of_all(attacked):
    (grid,) = comparisons_in(attacked)
    for row, line in zip(grid.rows, grid.lines, strict=True):
        pair = row.reconstructions, row.originals
        shown, truth = (each.double() / 255 for each in pair)
        error = float((shown - truth).square().mean())
        assert line["mse_shown"] == pytest.approx(error, abs=1e-3)
        assert line["mse_all"] == row.entry["metrics"]["mse"]["mean"]
        assert (line["images_shown"], line["images_all"]) == (20, 20)
    assert "20 images: mse" in grid.description


@pytest.mark.parametrize("changes", [{"targets": "0" * 64}, {"client": 1}])
def test_other_targets_or_another_client_are_not_mixed_in(own, changes):
    change(RunFolder.open(own / "raw"), **changes)
    (grid,) = comparisons_in(own)
    assert grid.labels == ["lightsplit-f 8x", "lightsplit-f 8x wcc=0.01"]


def test_other_pixels_are_not_mixed_in_whatever_the_record_says(own):
    (file,) = (own / "raw" / "images").glob("shown-linear*")
    kept = tensors.load(file)
    tensors.save(file, {**kept, "originals": 255 - kept["originals"]})
    (grid,) = comparisons_in(own)
    assert "raw" not in grid.labels


def test_a_run_whose_pictures_are_missing_is_left_out(own):
    shutil.rmtree(own / "raw" / "images")
    (grid,) = comparisons_in(own)
    assert "raw" not in grid.labels


def test_one_run_alone_makes_no_grid(own):
    for name in ("fixed-8", "compact"):
        shutil.rmtree(own / name)
    assert comparisons_in(own) == []


def test_forms_are_named_where_there_are_two(own):
    folder = RunFolder.open(own / "compact")
    change(folder, form="adaptive")
    (grid,) = comparisons_in(own)
    assert grid.labels[-1] == "lightsplit-f 8x wcc=0.01 adaptive"


def test_a_grid_is_in_the_page_and_among_the_files(attacked, tmp_path):
    report = make_report(*find_runs([attacked]))
    write_page(report, tmp_path / "report.html")
    assert 'id="comparisons"' in (tmp_path / "report.html").read_text()
    names = {path.name: path for path in write_files(report, tmp_path / "figures")}
    name = "grid-1-digits-tinycnn-l2-u-linear"
    lines = csv.DictReader(io.StringIO(names[f"{name}.csv"].read_text()))
    assert [line["codec"] for line in lines] == ["raw", "lightsplit-f", "lightsplit-f"]
    with Image.open(names[f"{name}.png"]) as picture:
        assert picture.width > 20 * 56
