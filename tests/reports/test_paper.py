import csv
import io

import pytest

from lightsplit.reports import group_runs
from lightsplit.reports.paper import paper_tables, read_figures
from lightsplit.reports.paper_derived import derived_figures

FMNIST = {"dataset": "fashion-mnist", "clients": 10}


def tables(runs_in):
    return {table.name: table for table in paper_tables(group_runs(runs_in()[0]))}


def lines(table):
    return list(csv.DictReader(io.StringIO(table.csv())))


def test_the_paper_has_all_cells_of_its_tables():
    counts = {}
    for line in read_figures():
        counts[line["table"]] = counts.get(line["table"], 0) + 1
    assert counts == {
        "communication": 4,
        "utility": 320,
        "compaction": 36,
        "clients": 24,
        "lift-back": 88,
        "unsplit": 104,
        "backdoors": 26,
        "sdar": 208,
        "fora": 39,
        "fora-reference": 39,
        "unsplit-whole": 208,
        "partitions": 20,
        "main": 78,
    }


def test_the_differences_that_the_paper_prints_follow_from_its_values():
    cells = {
        tuple(
            line[k] for k in ("dataset", "alpha", "cut", "heads", "codec", "ratio")
        ): line["value"]
        for line in read_figures()
        if line["table"] == "utility"
    }
    place = ("cifar10", 0, "l2", "shared")
    delta = cells[*place, "lightsplit-f", 8] - cells[*place, "raw", 1]
    assert round(delta, 2) == -3.74
    place = ("gtsrb", 0.1, "l1", "private")
    delta = cells[*place, "lightsplit-l", 32] - cells[*place, "raw", 1]
    assert round(delta, 2) == -50.00


def test_ours_stands_beside_the_papers_value_with_the_difference(make_run, runs_in):
    best = {"best_test_accuracy": 0.9}
    make_run("fixed", like="fixed-8", figures=best, **FMNIST)
    (line,) = lines(tables(runs_in)["utility"])
    assert float(line["ours"]) == 90
    assert float(line["paper"]) == 91.08
    (row,) = tables(runs_in)["utility"].rows
    assert row[-1].text == "90.00"
    assert row[-1].below == "paper 91.08 (-1.08)"


@pytest.mark.parametrize(
    "change", [{"wcc": 0.1}, {"clients": 7}, {"topology": "vanilla"}]
)
def test_runs_of_another_setting_do_not_pass_for_the_papers(make_run, runs_in, change):
    make_run("fixed", like="fixed-8", **{**FMNIST, **change})
    assert "utility" not in tables(runs_in)


def test_a_width_that_is_not_the_papers_choice_is_only_in_its_own_table(
    make_run, runs_in
):
    lifted = {"codec": "lightsplit-l", "ratio": 8}
    for width in (64, 128, 256):
        accuracy = {"best_test_accuracy": width / 1000}
        make_run(f"m{width}", figures=accuracy, hidden=width, **lifted, **FMNIST)
    found = tables(runs_in)
    (line,) = lines(found["utility"])
    assert float(line["ours"]) == 12.8
    assert [float(line["hidden"]) for line in lines(found["lift-back"])] == [
        64,
        128,
        256,
    ]


def test_of_two_runs_in_one_cell_the_longer_one_is_shown(make_run, runs_in):
    for name, samples in (("short", 10), ("long", 1000)):
        figures = {"samples": samples, "best_test_accuracy": samples / 10_000}
        make_run(name, like="fixed-8", figures=figures, epochs=samples, **FMNIST)
    (line,) = lines(tables(runs_in)["utility"])
    assert float(line["ours"]) == 10


def test_the_loss_by_compaction_is_relative_to_raw(make_run, runs_in):
    place = {"dataset": "cifar10", "clients": 10}
    make_run("raw", figures={"best_test_accuracy": 0.8}, **place)
    for wcc in (0.0, 0.1):
        figures = {"best_test_accuracy": 0.6 + wcc}
        make_run(f"w{wcc}", like="fixed-8", figures=figures, wcc=wcc, **place)
    by_place = {
        (line["codec"], float(line["wcc"])): line
        for line in lines(tables(runs_in)["compaction"])
    }
    assert float(by_place["lightsplit-f", 0.0]["ours"]) == pytest.approx(-25)
    assert float(by_place["lightsplit-f", 0.1]["ours"]) == pytest.approx(-12.5)
    assert float(by_place["lightsplit-f", 0.1]["paper"]) == -5.3
    assert float(by_place["raw", 0.0]["ours"]) == pytest.approx(80)
    assert float(by_place["raw", 0.0]["paper"]) == 87.24


def test_the_first_table_is_made_of_counted_bytes(make_run, runs_in):
    figures = {"samples": 100, "bytes": {"code": 204800, "code_gradient": 204800}}
    make_run("fixed", like="fixed-8", dataset="cifar10", figures=figures)
    (line,) = lines(tables(runs_in)["communication"])
    assert float(line["ours"]) == pytest.approx(float(line["paper"]), abs=0.05)


def test_unsplit_is_compared_as_a_ratio_to_raw(make_run, runs_in, attack):
    place = {"model": "mnistnet", "dataset": "mnist", "cut": "2"}
    for like, error in (("raw", 0.2), ("fixed-8", 0.3)):
        found = attack("unsplit", form="published", metrics={"mse_foreground": error})
        tuned = {"options": {"lr": 1.0}, "metrics": {"mse_foreground": {"mean": 9.0}}}
        other = {**found, **tuned}  # not what the paper ran
        make_run(like, like=like, audit=[found, other], **place)
    by_codec = {line["codec"]: line for line in lines(tables(runs_in)["unsplit"])}
    assert float(by_codec["lightsplit-f"]["ours"]) == pytest.approx(1.5)
    assert float(by_codec["lightsplit-f"]["paper"]) == 1.27


def test_the_pictures_of_the_paper_follow_from_its_tables():
    derived = derived_figures(read_figures())
    names = ("table", "dataset", "cut", "codec", "ratio")
    names += ("alpha", "heads", "topology", "wcc")
    found = {tuple(line.get(name) for name in names): line for line in derived}
    delta = ("cifar10", "l2", "learned-1x1", 32, 0.1, "shared", None, 0)
    assert found["utility-delta", *delta]["value"] == pytest.approx(-12.5, abs=0.1)
    ratio = ("cifar100", "l2", "lightsplit-l", 8, 0, "private", None, 0)
    assert 0.6 < found["head-ratio", *ratio]["value"] < 0.75
    bar = ("cifar10", "4", "lightsplit-f", 8, None, None, "u", 0)
    assert found["sdar-bars-ssim", *bar]["value"] == pytest.approx(-37.0, abs=0.05)


def test_private_heads_are_compared_with_shared_ones(make_run, runs_in):
    for heads, best in (("shared", 0.8), ("private", 0.6)):
        figures = {"best_test_accuracy": best}
        make_run(heads, like="fixed-8", figures=figures, **FMNIST, heads=heads)
    (line,) = lines(tables(runs_in)["head-ratio"])
    assert float(line["ours"]) == pytest.approx(0.75)


def test_the_difference_to_raw_is_in_points(make_run, runs_in):
    make_run("raw", like="raw", figures={"best_test_accuracy": 0.9}, **FMNIST)
    make_run("fixed", like="fixed-8", figures={"best_test_accuracy": 0.88}, **FMNIST)
    (line,) = lines(tables(runs_in)["utility-delta"])
    assert float(line["ours"]) == pytest.approx(-2.0)
    assert float(line["paper"]) == -0.56
