"""Runs of tasks that are judged by another figure than accuracy."""

import json

import pytest

from lightsplit.reports import find_runs, group_runs, overview
from lightsplit.reports.cautions import find_cautions
from lightsplit.reports.figures.curves import curves
from lightsplit.reports.figures.tradeoff import tradeoff
from lightsplit.reports.monitored import ANY, Monitored, common_heading

R2 = {"name": "r2", "is_higher_better": True, "last": 0.5, "best": 0.75}
MSE = {"name": "mse", "is_higher_better": False, "last": 0.5, "best": 0.25}


@pytest.fixture
def judged(make_run, tmp_path):
    """Return what writes a run with another monitor and no accuracy at all."""

    def write(name, monitor, **settings):
        folder = make_run(name, **settings)
        record = folder.read_record()
        record = {k: v for k, v in record.items() if "accuracy" not in k}
        figure = f"test_{monitor['name']}"
        record |= {"monitor": monitor, figure: monitor["last"]}
        record[f"best_{figure}"] = monitor["best"]
        folder.write_record(record)
        lines = (folder.path / "metrics.jsonl").read_text().splitlines()
        metrics = [json.loads(line) for line in lines]
        for line in metrics:
            line[figure] = line.pop("test_accuracy")
        folder.write_metrics(metrics)
        return folder

    return write


def groups_of(*folders):
    runs, problems = find_runs([folder.path for folder in folders])
    assert not problems
    return group_runs(runs)


def test_the_monitored_figure_takes_the_place_of_accuracy(judged):
    groups = groups_of(judged("one", R2), judged("two", R2, seed=1))
    table = overview(groups)
    assert "r2" in table.columns
    assert "accuracy %" not in table.columns
    cell = table.rows[0][table.columns.index("r2")]
    assert (cell.text, cell.below) == ("0.5 ± 0", "best 0.75")
    (line,) = table.lines
    assert (line["monitor"], line["monitored"], line["best_monitored"]) == (
        "r2",
        0.5,
        0.75,
    )
    assert line["test_accuracy"] is None
    assert line["of_raw"] is None


def test_a_column_with_several_figures_names_each(judged, make_run):
    table = overview(groups_of(judged("r2", R2), make_run("plain", like="fixed-8")))
    column = table.columns.index(ANY)
    words = sorted(row[column].text.split()[0] for row in table.rows)
    assert words == ["accuracy", "r2"]


@pytest.mark.parametrize(
    ("monitor", "axis"),
    [(R2, "test r2"), (MSE, "test mse, less is better")],
    ids=["r2", "mse"],
)
def test_pictures_have_the_figure_on_their_axis(judged, monitor, axis):
    groups = groups_of(judged("one", monitor))
    for picture in (curves(groups), tradeoff(groups)):
        drawn = picture.draw("black").axes[0]
        assert axis in (drawn.get_xlabel(), drawn.get_ylabel())
        assert {line["figure"] for line in picture.lines} == {monitor["name"]}
        assert monitor["name"].capitalize() in picture.note
    values = curves(groups).lines
    (line,) = curves(groups).draw("black").axes[0].lines
    assert list(line.get_ydata()) == [value["value"] for value in values]


def test_a_task_without_accuracy_has_not_collapsed(judged):
    found = find_cautions(groups_of(judged("one", R2)), [])
    assert "Collapsed to chance" not in [caution.title for caution in found]


def test_a_heading_is_that_of_all_figures_or_of_none():
    assert common_heading([Monitored(), Monitored()]) == "accuracy %"
    assert common_heading([Monitored("r2"), Monitored("r2")]) == "r2"
    assert common_heading([Monitored(), Monitored("r2")]) == ANY


def test_a_record_of_before_monitors_is_judged_by_accuracy():
    assert Monitored.of({}) == Monitored("accuracy", is_higher_better=True)
