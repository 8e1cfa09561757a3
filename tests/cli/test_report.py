import json
import shutil

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def two_runs(lightsplit, quick, tmp_path):
    for codec in ("raw", "lightsplit-f"):
        out = ["--out", tmp_path / "runs" / codec, "--json"]
        lightsplit("train", *quick, "--codec", codec, *out)
    return tmp_path / "runs"


def test_a_page_and_its_figures_are_written(lightsplit, two_runs, tmp_path):
    page, figures = tmp_path / "report.html", tmp_path / "figures"
    options = ["-o", page, "--figures", figures, "--title", "Two codecs"]
    said = lightsplit("report", two_runs, *options).stdout
    assert "2 runs, 2 experiments" in said
    assert "<h1>Two codecs</h1>" in page.read_text()
    assert (figures / "table-runs.csv").read_text().count("\n") == 3
    assert (figures / "bytes.svg").exists()


def test_runs_that_are_left_out_are_named(lightsplit, two_runs, tmp_path):
    record = two_runs / "raw" / "record.json"
    record.write_text(record.read_text()[:50])
    before = record.read_bytes()
    result = lightsplit("report", two_runs, "-o", tmp_path / "report.html")
    assert "1 runs, 1 experiments" in result.stdout
    assert "left out" in result.stderr
    assert "is damaged" in result.stderr
    assert record.read_bytes() == before


def test_a_folder_that_is_no_run_is_refused(refused, tmp_path):
    for command in ("report", "compare"):
        assert "is not a run and holds none" in refused(command, tmp_path)
        assert "is not a folder" in refused(command, tmp_path / "nowhere")


def test_runs_are_compared_in_one_table(lightsplit, two_runs):
    shown = lightsplit("compare", two_runs / "raw", two_runs / "lightsplit-f").stdout
    for words in (
        "raw",
        "lightsplit-f 8x",
        "digits: l2 · shared · n=3 · IID",
        "of raw",
    ):
        assert words in shown
    entries = json.loads(lightsplit("compare", two_runs, "--json").stdout)
    assert [entry["codec"] for entry in entries] == ["raw", "lightsplit-f"]
    assert entries[0]["of_raw"] == 1


def test_a_run_that_is_repeated_is_compared_once(lightsplit, two_runs, tmp_path):
    again = shutil.copytree(two_runs / "raw", tmp_path / "again")
    shown = lightsplit("compare", two_runs / "raw", again)
    assert f"left out: {again}: same settings and seed as another run" in shown.stderr
