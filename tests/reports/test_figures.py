"""The CSV of a picture has the panels that the picture leaves out."""

import pytest

from lightsplit.reports.figures.curves import curves
from lightsplit.reports.figures.drawing import FILE_INK, PANELS
from lightsplit.reports.figures.histograms import histograms
from lightsplit.reports.figures.tradeoff import tradeoff
from lightsplit.reports.figures.traffic import traffic
from lightsplit.reports.groups import group_runs


@pytest.mark.slow
@pytest.mark.parametrize("make", [curves, histograms, tradeoff, traffic])
def test_settings_beyond_the_last_panel_are_told_of_and_in_the_csv(
    make, make_run, runs_in
):
    for clients in range(2, PANELS + 4):
        make_run(f"n{clients}", clients=clients)
    runs, _ = runs_in()
    picture = make(group_runs(runs))
    assert f"The first {PANELS} of {len(runs)} are drawn" in picture.note
    named = {line.get("setting", line.get("clients")) for line in picture.lines}
    assert len(named) == len(runs)
    titles = [axis.get_title(loc="left") for axis in picture.draw(FILE_INK).axes]
    assert len([title for title in titles if title]) == PANELS
