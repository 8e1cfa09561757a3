import csv
import json
import tomllib

import pytest

from lightsplit.advice import Limits, advise, write_advice
from lightsplit.experiments import make_experiment
from lightsplit.reports.figures.frontier import frontier
from lightsplit.reports.frontier import pareto

BITS = "lightsplit-b:bits=12"


@pytest.fixture
def found(candidates, run):
    return candidates(
        run("raw", 0.9, 0.9, 1.0),
        run("none", 0.8),
        run(BITS, 0.89, 0.44, 0.03),
        run("topk", 0.7, 0.95, 1.0),
    )


def test_page_picture_figures_and_experiment_file_are_written(found, tmp_path):
    write_advice(advise(found, Limits()), tmp_path, title="Tom & Jerry")
    page = (tmp_path / "report.html").read_text()
    assert "Tom &amp; Jerry" in page
    assert "Use lightsplit-b 12 bits at cut l2." in page
    assert (tmp_path / "frontier.png").read_bytes()[:4] == b"\x89PNG"
    with (tmp_path / "frontier.csv").open() as file:
        lines = {line["method"]: line for line in csv.DictReader(file)}
    bits = lines["lightsplit-b 12 bits"]
    assert (bits["is_advised"], bits["is_on_frontier"]) == ("True", "True")
    assert float(bits["over_raw"]) == pytest.approx(-0.01)
    assert float(bits["ssim_gain"]) == pytest.approx(0.04)
    assert lines["raw"]["limits_missed"].startswith("100.0% of the images are named")
    topk = next(line for name, line in lines.items() if "topk" in name)
    assert topk["is_on_frontier"] == "False"


def test_other_programs_can_read_the_advice(found, tmp_path):
    write_advice(advise(found, Limits(0.04)), tmp_path)
    read = json.loads((tmp_path / "frontier.json").read_text())
    assert read["advice"] == "lightsplit-b 12 bits at cut l2"
    assert read["limits"]["reidentification"] == 0.04
    assert len(read["settings"]) == 4
    tables = tomllib.loads((tmp_path / "advice.toml").read_text())
    assert tables == read["experiment"]
    assert make_experiment(tables).tables() == tables


def test_an_earlier_experiment_file_does_not_outlive_its_advice(
    candidates, run, tmp_path
):
    settings = candidates(run("raw", 0.9, 0.44, 0.03))
    write_advice(advise(settings, Limits()), tmp_path)
    assert (tmp_path / "advice.toml").is_file()
    write_advice(advise(settings, Limits(0.0)), tmp_path)
    assert not (tmp_path / "advice.toml").exists()
    assert "No setting of this search" in (tmp_path / "report.html").read_text()


def test_no_setting_on_the_frontier_is_beaten_by_another(found):
    points = [one.point for one in found]
    for metric in ("ssim", "reidentification"):
        edge = pareto(points, metric)
        assert edge[0].is_alone
        leaks = [point.leak(metric) for point in edge]
        values = [point.value for point in edge]
        assert leaks == sorted(leaks)
        assert values == sorted(set(values))


def test_the_trivial_attackers_see_no_code(found):
    (bits,) = (p.point for p in found if "lightsplit-b" in p.point.method)
    assert bits.guess("ssim") == bits.class_mean == 0.4  # not the nearest image's 0.99


def test_without_an_audit_there_is_no_frontier(candidates, run):
    assert frontier([one.point for one in candidates(run("none", 0.8))]) is None
