"""The part of a report that is about backdoors."""

import csv
import io

import pytest

from lightsplit.reports import group_runs, make_report
from lightsplit.reports.backdoors import backdoor_parts
from lightsplit.reports.paper import paper_tables

BASE = {
    "dataset": "cifar10",
    "clients": 4,
    "alpha": 1e7,
    "trigger": "badnets",
    "malicious": 0.1,
    "poison_ratio": 0.3,
    "detector": "cosine-output,cosine-code",
}
FIXED = {"codec": "lightsplit-f", "ratio": 16}


def seen(detector, scores, malicious, threshold=3.0):
    flagged = [c for c, score in enumerate(scores) if score > threshold]
    hits, total = len(set(flagged) & set(malicious)), len(flagged) + len(malicious)
    return {
        "detector": detector,
        "threshold": threshold,
        "false_alarm_rate": 0.2,
        "scores": scores,
        "flagged": flagged,
        "f1": 2 * hits / total if total else None,
    }


@pytest.fixture
def poisoned(make_run):
    """Return what writes a run that two detectors have judged."""

    def write(name, outputs, codes=(0.1, 0.2, 0.3, 9.0), malicious=(3,), **settings):
        first = seen("cosine-output", list(outputs), malicious)
        other = seen("cosine-code", list(codes), malicious)
        backdoor = {
            "malicious_clients": list(malicious),
            "success_rate": 0.9,
            "unmarked_rate": 0.05,
            "base_rate": None,
        }
        if not malicious:
            none = {"trigger": None, "malicious": None, "poison_ratio": None}
            backdoor, settings = None, {**settings, **none}
        figures = {"detection": {**first, "others": [other]}, "backdoor": backdoor}
        folder = make_run(name, figures=figures, **{**BASE, **FIXED, **settings})
        clients = list(range(len(outputs)))
        folder.write_verdicts(
            {
                **first,
                "clients": clients,
                "scores": [share * score for score in outputs],
                "others": [{**other, "clients": clients}],
            }
            for share in (0.5, 1)
        )

    return write


@pytest.fixture
def parts(runs_in):
    def find():
        found = backdoor_parts(group_runs(runs_in()[0]))
        return {part.name: part for part in found}

    return find


def lines(table):
    return list(csv.DictReader(io.StringIO(table.csv())))


def along_alpha(poisoned):
    poisoned("base-0", [1, 0, 2, 8], clients=10)
    poisoned("base-1", [1, 0, 2, 2], clients=10, seed=1)
    poisoned("skewed", [1, 0, 5, 0.5], clients=10, alpha=0.1)
    poisoned("few", [1, 0, 2, 40], clients=5)


def test_runs_without_trigger_and_detector_have_no_such_part(make_run, parts):
    make_run("plain")
    assert parts() == {}


def test_f1_stands_beside_the_papers_in_its_shape(poisoned, parts):
    along_alpha(poisoned)
    rows = [
        [value.text for value in row[:3]] + [row[3].text, row[3].below]
        for row in parts()["backdoor-f1"].rows
    ]
    base = "α=1e+07, n=10, μ=0.1, p=0.3"
    assert rows[:3] == [
        ["cosine-output", "baseline", base, "0.50 ± 0.71", "paper 0.89 (-0.39)"],
        ["cosine-output", "α (Dirichlet)", "0.1", "0.00", "paper 0 (+0.00)"],
        ["cosine-output", "n (clients)", "5", "1.00", "paper 1 (+0.00)"],
    ]
    assert {row[0] for row in rows[3:]} == {"cosine-code"}
    assert {row[4] for row in rows[3:]} == {""}  # the paper has outputs only


def test_the_papers_figure_is_marked_where_the_dataset_is_another(poisoned, parts):
    poisoned("digits", [1, 0, 2, 8], clients=10, dataset="digits")
    (first, _) = parts()["backdoor-f1"].rows
    assert first[3].below == "paper 0.89 on cifar10"


def test_the_base_has_the_most_frequent_values(poisoned, parts):
    for share in (0.1, 0.5, 0.8):
        poisoned(f"p{share}", [1, 0, 2, 8], poison_ratio=share)
    poisoned("paper", [1, 0, 2, 8], clients=10, poison_ratio=0.5)
    settings = [row[1].text for row in parts()["backdoor-f1"].rows[:4]]
    assert settings == ["baseline", "n (clients)", *["p (poison ratio)"] * 2]


def test_outcomes_have_both_rates_and_a_score_per_detector(poisoned, parts):
    poisoned("run", [4, 0, 2, 8])
    table = parts()["backdoors"]
    assert table.columns[4:] == (
        "backdoor %",
        "without the mark %",
        "cosine-output",
        "cosine-code",
    )
    (row,) = table.rows
    assert [value.text for value in row[4:]] == ["90.00", "5.00", "8.0", "9.0"]
    assert row[-2].below == "1 of 3 honest flagged"
    output, code = lines(table)
    assert output["smallest_score_per_verdict"] == "4.00 8.00"
    assert (output["rank"], output["detector"]) == ("1", "cosine-output")
    assert (code["rank"], code["detector"]) == ("1", "cosine-code")


def test_of_several_malicious_clients_the_least_noticed_one_counts(poisoned, parts):
    poisoned("base", [1, 0, 2, 8], malicious=(3,))
    poisoned("two", [1, 0, 5, 8], malicious=(0, 3), poison_ratio=0.5)
    by_value = {
        line["value"]: line for line in parts()["detection-cosine-output"].lines
    }
    assert by_value[0.5]["smallest_score"] == 1
    two = next(
        line for line in lines(parts()["backdoors"]) if line["poison_ratio"] == "0.5"
    )
    assert (two["rank"], two["mean_score"]) == ("3", "4.5")


def test_the_pictures_have_a_panel_for_each_factor_that_varies(poisoned, parts):
    along_alpha(poisoned)
    found = parts()
    for detector in ("cosine-output", "cosine-code"):
        picture = found[f"detection-{detector}"]
        factors = {line["factor"] for line in picture.lines}
        assert factors == {"alpha", "clients"}
        axes = [axis for axis in picture.draw("#000000").axes if axis.get_visible()]
        ticks = [[tick.get_text() for tick in axis.get_xticklabels()] for axis in axes]
        assert ticks == [["0.1", "1e+07"], ["5", "10"]]
        assert all(3 in axis.lines[-1].get_ydata() for axis in axes)


def test_a_score_of_zero_and_iid_clients_can_be_drawn(poisoned, parts):
    poisoned("skewed", [1, 0, 2, 0], alpha=0.1)
    poisoned("alike", [1, 0, 2, 3], alpha="iid")
    picture = parts()["detection-cosine-output"]
    assert [line["value"] for line in picture.lines] == [0.1, 0]
    assert "<svg" in picture.svg()


def test_a_single_setting_needs_no_picture(poisoned, parts):
    poisoned("run", [4, 0, 2, 8])
    assert list(parts()) == ["backdoor-f1", "backdoors"]


def test_false_alarms_of_honest_runs_are_shown_without_a_score(poisoned, parts):
    poisoned("honest", [4, 0, 2, 8], malicious=())
    (row,) = parts()["backdoors"].rows
    assert (row[-2].text, row[-2].below) == ("–", "2 of 4 honest flagged")
    assert "backdoor-f1" not in parts()


def test_a_run_with_a_trigger_and_no_detector_is_listed(poisoned, make_run, parts):
    poisoned("judged", [1, 0, 2, 8])
    backdoor = {"malicious_clients": [0], "success_rate": 0.5, "unmarked_rate": 0.1}
    figures = {"backdoor": backdoor, "detection": None}
    make_run("alone", figures=figures, **{**BASE, "detector": None, "alpha": 0.1})
    assert {line["detector"] for line in lines(parts()["backdoors"])} == {
        "cosine-output",
        "cosine-code",
        "",
    }


def test_poisoned_runs_do_not_pass_for_the_papers_clean_ones(poisoned, runs_in):
    poisoned("run", [1, 0, 2, 8], clients=10, alpha="iid")
    assert paper_tables(group_runs(runs_in()[0])) == []


def test_all_about_backdoors_stands_together_on_the_page(poisoned, runs_in):
    along_alpha(poisoned)
    names = [part.name for part in make_report(*runs_in()).parts]
    start = names.index("backdoor-f1")
    assert names[start : start + 4] == [
        "backdoor-f1",
        "detection-cosine-output",
        "detection-cosine-code",
        "backdoors",
    ]
