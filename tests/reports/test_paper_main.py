"""The main table is assembled from runs of several sweeps."""

import pytest

from lightsplit.reports import group_runs
from lightsplit.reports.paper import read_figures
from lightsplit.reports.paper_main import main_table

DATASETS = {"cifar10": 0.1, "cifar100": 0.5, "fashion-mnist": 0.1, "gtsrb": 0.1}


def cells(table):
    return {
        (line["codec"], line["ratio"], line["column"]): line for line in table.lines
    }


@pytest.fixture
def table(make_run, runs_in):
    """Return what writes the paper's own accuracies as runs, and the table of them."""

    def make(methods):
        for line in read_figures():
            if line["table"] != "utility" or line["cut"] != "l2":
                continue
            method = (line["codec"], line["ratio"])
            if line["heads"] != "shared" or method not in methods:
                continue
            like = "raw" if line["codec"] == "raw" else "fixed-8"
            name = f"{line['dataset']}-{line['alpha']}-{like}"
            make_run(
                name,
                like=like,
                figures={"best_test_accuracy": line["value"] / 100},
                dataset=line["dataset"],
                alpha=line["alpha"] or "iid",
                clients=10,
            )
        return main_table(group_runs(runs_in()[0]))

    return make


def test_the_papers_accuracies_give_the_papers_main_table(table):
    found = cells(table([("raw", 1), ("lightsplit-f", 8)]))
    for (codec, _, column), line in found.items():
        rounding = 0.006 if codec == "raw" else 0.06
        assert line["ours"] == pytest.approx(line["paper"], abs=rounding), column
    assert found["lightsplit-f", 8, "skewed_mean"]["paper"] == -3.3


def test_without_a_raw_run_there_is_no_table(table):
    assert table([("lightsplit-f", 8)]) is None
