import pytest

from lightsplit.advice import Choices, affordable, make_search, price_cells
from lightsplit.errors import ConfigError, LightSplitError
from lightsplit.sweeps import expand


def methods(sweep, cut="l2"):
    cells = [cell.experiment for cell in expand(sweep)]
    return [
        (each.codec.name, *each.objective) for each in cells if each.split.cut == cut
    ]


def test_the_usual_search_has_the_yardsticks_and_every_cut_of_the_model():
    sweep = make_search("name", {"epochs": 1}, Choices())
    assert methods(sweep, "l1") == methods(sweep, "l2")
    assert methods(sweep)[:3] == [("none",), ("raw",), ("lightsplit-f",)]
    hiding = ("lightsplit-b", "class-codes", "conditional-entropy")
    assert methods(sweep).count(hiding) == 2
    assert ("lightsplit-f", "class-codes", "conditional-entropy") not in methods(sweep)


def test_bits_and_codecs_replace_the_usual_ones():
    choices = Choices(("l2",), ("topk:ratio=8", "raw"), (4,), ("none", "class-codes"))
    sweep = make_search("name", {}, choices)
    assert methods(sweep, "l1") == []
    assert methods(sweep) == [
        ("none",),
        ("raw",),
        ("topk",),
        ("lightsplit-b",),
        ("topk", "class-codes"),
        ("lightsplit-b", "class-codes"),
    ]


def test_a_place_in_the_model_is_searched_instead_of_its_named_cuts():
    sweep = make_search("name", {"head_until": "relu1"}, Choices(bits=(4,)))
    assert {cell.experiment.split.head_until for cell in expand(sweep)} == {"relu1"}


def test_several_seeds_are_several_cells():
    sweep = make_search("name", {"seed": [0, 1]}, Choices(("l1",), bits=(4,)))
    assert [c.experiment.seed for c in expand(sweep)][:2] == [0, 1]


@pytest.mark.parametrize(
    ("choices", "reason"),
    [
        (Choices(objectives=("clas-codes",)), "did you mean 'class-codes'?"),
        (Choices(objectives=("cem+bit-flips",)), "needs"),
        (Choices(codecs=("lightsplit-x",)), "lightsplit-x"),
        (Choices(bits=(0,)), "bits must be from 1"),
        (Choices(cuts=("l9",)), "l9"),
    ],
)
def test_what_cannot_be_built_is_refused(choices, reason):
    with pytest.raises(LightSplitError, match=reason):
        price_cells(expand(make_search("name", {}, choices)))


def test_settings_beyond_the_clients_means_are_left_out():
    cells = expand(make_search("name", {}, Choices(bits=(4,), objectives=("none",))))
    priced = price_cells(cells)
    shallow = [one for one in priced if one.cell.experiment.split.cut == "l1"]
    most = max(one.client_flops for one in shallow)
    assert affordable(priced, most) == shallow
    assert affordable(priced, None) == priced
    with pytest.raises(ConfigError, match="leaves no setting: the cheapest, digits-l1"):
        affordable(priced, 10)
