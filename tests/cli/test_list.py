import json

import pytest
from rich.console import Console

from lightsplit.cli import console
from lightsplit.cli.listing import KINDS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_part_is_listed_with_its_description(lightsplit, kind):
    entries = json.loads(lightsplit("list", kind, "--json").stdout)
    assert list(entries) == KINDS[kind].names()
    assert all(all(facts.values()) for facts in entries.values())
    shown = lightsplit("list", kind).stdout
    assert all(name in shown for name in entries)


def test_an_unknown_kind_is_refused_with_the_known_ones(refused):
    message = refused("list", "model")
    assert all(kind in message for kind in KINDS)
    assert "did you mean 'models'?" in message


def test_a_kind_must_be_given(lightsplit):
    lightsplit("list", code=2)


def test_an_attack_is_listed_with_its_threat_model_and_cost(lightsplit):
    decoder = json.loads(lightsplit("list", "attacks", "--json").stdout)["decoder"]
    assert decoder["kind"] == "oracle"
    assert decoder["abilities"] == "reconstructs"
    assert decoder["options"].startswith("most_pairs, steps, most_steps, width")
    assert "who could do it" in decoder
    assert "cost" in decoder


def test_a_model_is_listed_with_its_cuts(lightsplit):
    models = json.loads(lightsplit("list", "models", "--json").stdout)
    assert models["resnet18"]["cuts"] == "l1, l2 (default)"


@pytest.mark.parametrize("width", [80, 200])
def test_no_word_about_an_attack_is_cut_off(lightsplit, monkeypatch, width):
    monkeypatch.setattr(console, "out", Console(width=width))
    shown = lightsplit("list", "attacks").stdout
    assert "…" not in shown
    assert "substitute" in shown


@pytest.mark.parametrize("kind", ["codecs", "objectives", "label-protections"])
def test_a_part_is_listed_with_its_source_costs_and_status(lightsplit, kind):
    columns = {"source", "assumes", "costs the client", "adaptive attacker", "status"}
    for name, facts in json.loads(lightsplit("list", kind, "--json").stdout).items():
        assert facts.keys() == {"what it is"} | columns
        if not KINDS[kind].is_plug_in(name):
            assert "–" not in facts.values(), name
            assert facts["status"] in ("ours", "faithful", "adapted")


def test_an_attack_is_listed_with_its_source_assumptions_and_status(lightsplit):
    for name, facts in json.loads(
        lightsplit("list", "attacks", "--json").stdout
    ).items():
        if not KINDS["attacks"].is_plug_in(name):
            assert "–" not in (facts["source"], facts["assumes"], facts["cost"]), name
            assert facts["status"] in ("ours", "faithful", "adapted")


def test_methods_that_no_run_names_are_listed_with_the_reason(lightsplit):
    found = json.loads(lightsplit("list", "methods", "--json").stdout)
    assert "predict --encrypted" in found["he-linear"]["what it is"]
    assert found["he-linear"]["status"] == "adapted"
    assert found["fedvs"]["status"] == "not applicable"
    assert "no sum to hide in" in found["fedvs"]["what it is"]
    assert all("–" not in facts.values() for facts in found.values())
    shown = " ".join(lightsplit("list", "methods").stdout.split())
    assert "not applicable" in shown
