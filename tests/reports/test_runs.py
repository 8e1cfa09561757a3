import json

import pytest

from lightsplit.errors import RunError
from lightsplit.reports import find_runs, read_run


def test_runs_are_found_in_and_under_a_folder_once(real_runs):
    runs, problems = find_runs([real_runs, real_runs / "raw"])
    assert sorted(run.path.name for run in runs) == sorted(
        path.name for path in real_runs.iterdir()
    )
    assert not problems
    assert all(len(run.metrics) == 2 for run in runs)


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(RunError, match="is not a run and holds none"):
        find_runs([tmp_path])
    with pytest.raises(RunError, match="is not a folder"):
        find_runs([tmp_path / "nowhere"])


def test_a_record_of_another_version_is_refused(make_run):
    folder = make_run("new", figures={"record_version": 99})
    with pytest.raises(RunError, match="has version 99, but this LightSplit reads"):
        read_run(folder.path)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"record_version": 1}'])
def test_a_half_written_record_is_told_and_the_others_are_kept(
    make_run, runs_in, content
):
    make_run("whole")
    broken = make_run("broken")
    broken.record_file.write_text(content)
    runs, problems = runs_in()
    assert [run.path.name for run in runs] == ["whole"]
    assert [problem.path.name for problem in problems] == ["broken"]
    assert "record.json" in problems[0].reason


def test_an_unfinished_run_is_told_with_the_error_it_left(make_run, runs_in):
    for name in ("unfinished", "failed"):
        make_run(name).record_file.unlink()
    failed = make_run("whole").path.parent / "failed"
    (failed / "error.txt").write_text("no such data\n\nTraceback …\n")
    _, problems = runs_in()
    reasons = {problem.path.name: problem.reason for problem in problems}
    assert reasons["failed"] == "failed: no such data"
    assert "not finished" in reasons["unfinished"]


def test_half_a_line_of_metrics_is_left_out(make_run):
    folder = make_run("run")
    with folder.metrics_file.open("a") as file:
        file.write(json.dumps({"step": 9})[:4])
    assert len(read_run(folder.path).metrics) == 2
