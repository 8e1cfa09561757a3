from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightsplit.errors import ConfigError
from lightsplit.experiments import from_settings, make_experiment
from lightsplit.sweeps import Cell, catalogue, expand, read_sweep
from lightsplit.sweeps.sweep_file import Sweep


def settings_of(cells, *names):
    return [tuple(cell.experiment.settings()[name] for name in names) for cell in cells]


def test_a_grid_is_the_product_of_its_lists():
    sweep = Sweep("grid", common={"seed": [0, 1], "ratio": [8, 16], "clients": 3})
    expected = list(product([0, 1], [8, 16], [3]))
    assert settings_of(expand(sweep), "seed", "ratio", "clients") == expected


def test_parts_of_the_grid_are_joined_and_equal_cells_are_one():
    parts = ({"codec": "raw"}, {"codec": ["raw", "topk"]})
    cells = expand(Sweep("grid", common={"seed": [0, 1]}, cells=parts))
    expected = [("raw", 0), ("raw", 1), ("topk", 0), ("topk", 1)]
    assert sorted(settings_of(cells, "codec", "seed")) == expected


def test_derived_settings_are_filled_in_before_cells_are_compared():
    parts = ({"hidden": [128]}, {"ratio": [8, 8.0]}, {})
    common = {"codec": "lightsplit-l"}
    assert len(expand(Sweep("grid", common=common, cells=parts))) == 1


def test_excluded_cells_are_those_that_match_in_everything():
    rules = ({"seed": [1, 2], "ratio": 8},)
    sweep = Sweep("grid", common={"seed": [0, 1, 2], "ratio": [8, 16]}, exclude=rules)
    assert settings_of(expand(sweep), "seed", "ratio") == [
        (0, 8),
        (0, 16),
        (1, 16),
        (2, 16),
    ]


def test_a_cell_can_be_excluded_by_its_dotted_setting():
    rules = ({"codec.ratio": 8}, {"training.seed": 1}, {"task.model": "simplecnn"})
    sweep = Sweep("grid", common={"seed": [0, 1], "ratio": [8, 16]}, exclude=rules)
    assert settings_of(expand(sweep), "seed", "ratio") == [(0, 16)]


def test_a_grid_without_cells_is_refused():
    with pytest.raises(ConfigError, match="leaves no cell"):
        expand(Sweep("grid", exclude=({"codec": "lightsplit-f"},)))


def test_a_grid_beyond_measure_is_refused_before_it_is_made():
    common = {name: list(range(2, 102)) for name in ("seed", "clients", "epochs")}
    with pytest.raises(ConfigError, match="1,000,000 cells"):
        expand(Sweep("grid", common=common))


def test_an_impossible_cell_is_named():
    with pytest.raises(ConfigError, match=r"the cell with seed = 0, codec = 'rawr'"):
        expand(Sweep("grid", common={"seed": 0, "codec": ["rawr"]}))


@given(st.integers(0, 2**40), st.sampled_from(["raw", "topk", "learned-1x1"]))
def test_a_cell_is_known_by_its_settings_alone(seed, codec):
    cell = Cell(from_settings({"seed": seed, "codec": codec}))
    again = Cell(make_experiment(cell.experiment.tables()))
    other = Cell(from_settings({"seed": seed + 1, "codec": codec}))
    assert cell.folder_name == again.folder_name
    assert cell.key != other.key


@pytest.mark.parametrize("name", catalogue())
def test_every_file_of_the_paper_gives_cells_at_both_scales(name):
    path = catalogue()[name]
    for scale in ("small", "paper"):
        sweep = read_sweep(path, scale=scale)
        assert sweep.title
        assert sweep.about
        assert sweep.paper
        assert expand(sweep)


def test_the_utility_grid_is_the_papers():
    cells = expand(read_sweep(catalogue()["utility"], scale="paper"))
    assert len(cells) == 320  # 40 rows of 8 columns
    alphas = set(settings_of(cells, "dataset", "alpha"))
    assert alphas == {
        *product(["fashion-mnist", "gtsrb", "cifar10"], ["iid", 0.1]),
        *product(["cifar100"], ["iid", 0.5]),
    }


def test_backdoors_change_one_factor_of_the_papers_baseline_at_a_time():
    factors = ("clients", "alpha", "malicious", "poison_ratio")
    base = (10, 1e7, 0.1, 0.3)
    path = catalogue()["backdoors"]
    found = settings_of(expand(read_sweep(path)), "codec", "seed", *factors)
    codecs = {"raw", "learned-1x1", "lightsplit-f", "lightsplit-l"}
    assert {(codec, seed) for codec, seed, *place in found if tuple(place) == base} == {
        *product(codecs, range(3))
    }
    others = [place for place in found if place[2:] != base]
    assert len(others) == 48
    for *_, seed, n, alpha, share, ratio in others:
        same = [a == b for a, b in zip((n, alpha, share, ratio), base, strict=True)]
        assert (seed, sum(same)) == (0, 3)


def test_the_baseline_of_the_backdoors_can_be_run_alone():
    baseline = {"clients": 10, "alpha": 1e7, "malicious": 0.1, "poison_ratio": 0.3}
    sweep = read_sweep(catalogue()["backdoors"], changes={**baseline, "seed": [0, 1]})
    assert len(expand(sweep)) == 8
