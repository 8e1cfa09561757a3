"""Settings under short and dotted names, and the tables that they stand for."""

import pytest

from lightsplit.errors import ConfigError
from lightsplit.experiments import from_settings, make_experiment
from lightsplit.experiments.settings import (
    dotted_names,
    known_as,
    known_settings,
    parse_change,
    parse_value,
    to_tables,
)
from lightsplit.results.settings import short_name


@pytest.mark.parametrize(
    ("settings", "tables"),
    [
        ({"ratio": 8}, {"codec": {"ratio": 8}}),
        ({"codec.ratio": 8}, {"codec": {"ratio": 8}}),
        ({"seed": 3, "lr": 0.1}, {"training": {"seed": 3, "lr": 0.1}}),
        ({"task": "digits"}, {"task": {"name": "digits"}}),
        ({"dataset": "digits"}, {"task": {"name": "digits"}}),
        ({"model": "tinycnn"}, {"task": {"model": "tinycnn"}}),
        ({"wire": "max"}, {"wire": {"preset": "max"}}),
        ({"wcc": 0.1}, {"objective": {"wcc": {"weight": 0.1}}}),
        ({"output_size": 20}, {"output_codec": {"size": 20}}),
        ({"detect_every": 2}, {"guard": {"every": 2}}),
        ({"codec": "raw"}, {"codec": {"name": "raw"}}),
        ({"task.width": 3}, {"task": {"width": 3}}),
        ({"ratio": None, "codec": None, "threshold": None}, {}),
    ],
)
def test_a_setting_has_a_short_and_a_dotted_name(settings, tables):
    assert to_tables(settings) == tables


def test_every_short_name_stands_for_one_dotted_name():
    for short, dotted in dotted_names().items():
        assert to_tables({short: 1}) == to_tables({dotted: 1})
        assert known_as(dotted) == known_as(short) == short_name(dotted)


def test_a_codec_is_given_with_its_options():
    settings = {"codec": "lightsplit-l:hidden=64,projection=dct", "ratio": 4}
    table = {"name": "lightsplit-l", "hidden": 64, "projection": "dct", "ratio": 4}
    assert to_tables(settings) == {"codec": table}
    assert from_settings(settings).codec.options["hidden"] == 64


@pytest.mark.parametrize(
    ("value", "terms"),
    [
        ("wcc:0.1", {"wcc": {"weight": 0.1}}),
        (["wcc:1"], {"wcc": {"weight": 1.0}}),
        ("mine:0.1,margin=2", {"mine": {"weight": 0.1, "margin": 2}}),
        ("mine", {"mine": {"weight": 1.0}}),
        ("mine:margin=2,b=x", {"mine": {"weight": 1.0, "margin": 2, "b": "x"}}),
        (["a:1,b=x", "c:2"], {"a": {"weight": 1.0, "b": "x"}, "c": {"weight": 2.0}}),
    ],
)
def test_an_objective_is_a_name_a_weight_and_options(value, terms):
    assert to_tables({"objective": value}) == {"objective": terms}


def test_the_short_name_of_compaction_is_its_objective():
    assert from_settings({"wcc": 0.1}) == from_settings({"objective": "wcc:0.1"})


@pytest.mark.parametrize("text", ["wcc:", "wcc:much", "wcc:,margin=1"])
def test_an_objective_with_a_weight_that_is_none_is_refused(text):
    with pytest.raises(ConfigError, match="expected NAME, NAME:WEIGHT or"):
        to_tables({"objective": text})


@pytest.mark.parametrize(
    "value",
    [
        "cosine-output , cosine-code",
        ["cosine-output", "cosine-code"],
    ],
)
def test_detectors_keep_their_order_and_lose_their_spaces(value):
    tables = to_tables({"detector": value})
    assert list(tables["detector"]) == ["cosine-output", "cosine-code"]


def test_a_detector_is_given_with_its_options():
    given = ["cosine-code:threshold=4,consensus=median", "contra"]
    detectors = from_settings({"detector": given}).detector
    assert detectors["cosine-code"]["threshold"] == 4
    assert detectors["cosine-code"]["consensus"] == "median"
    assert "threshold" not in detectors["contra"]


def test_an_option_goes_to_every_detector_that_has_it():
    settings = {"detector": "cosine-code,cosine-output,fltrust"}
    more = {"false_alarm_rate": 0.1, "trusted_client": 2}
    detectors = from_settings({**settings, **more}).detector
    assert detectors["cosine-code"]["false_alarm_rate"] == 0.1
    assert detectors["cosine-output"]["false_alarm_rate"] == 0.1
    assert detectors["fltrust"] == {"trusted_client": 2}


def test_one_threshold_serves_only_scores_of_one_scale():
    same = {"detector": "cosine-code,cosine-output", "threshold": 2.0}
    found = from_settings(same).detector
    assert [options["threshold"] for options in found.values()] == [2, 2]
    with pytest.raises(ConfigError, match="different scales: cosine-code 3, contra"):
        from_settings({"detector": "cosine-code,contra", "threshold": 2.0})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"batchsize": 8}, "unknown setting 'batchsize'.*did you mean 'batch_size'"),
        ({"codec.ratoi": 8}, "has no option 'ratoi'.*did you mean 'ratio'"),
        ({"codex.ratio": 8}, "unknown table 'codex'.*did you mean 'codec'"),
        ({"objective": "wcx:1"}, "unknown objective 'wcx'.*did you mean 'wcc'"),
        ({"detector": "contr"}, "unknown detector 'contr'.*did you mean 'contra'"),
        ({"detector": "contra,"}, "expected NAME or NAME:OPTION=VALUE"),
        ({"detector": "contra,contra"}, "can be named only once"),
        ({"sides": "one"}, "sides is not a setting of detector none"),
        ({"detector": "contra", "sides": "one"}, "not a setting of detector 'contra'"),
        ({"detector": "foolsgold:consensus=mean"}, "has no option 'consensus'"),
        ({"detector": 3}, "expected a name or a list of names, got 3"),
        ({"codec": ["raw", "topk"]}, "expected one codec, got raw, topk"),
        ({"codec": []}, "expected one codec, got none"),
        ({"codec": "topk:hidden=4"}, "codec 'topk' has no option 'hidden'"),
        ({"task": "digits", "dataset": "mnist"}, "task and dataset are the same"),
        ({"ratio": 8, "codec.ratio": 16}, "ratio and codec.ratio are the same setting"),
    ],
)
def test_an_invalid_setting_is_refused_with_the_nearest_valid_one(settings, said):
    with pytest.raises(ConfigError, match=said):
        from_settings(settings)


def test_one_setting_under_two_names_may_be_said_twice():
    both = {"task": "mnist", "dataset": "mnist", "codec.ratio": 4, "ratio": 4}
    assert from_settings(both) == from_settings({"task": "mnist", "ratio": 4})


@pytest.mark.parametrize(
    ("old", "instead"),
    [
        ({"ratio": 8}, r"ratio = 8 write \[codec\] ratio = 8"),
        ({"codec": "raw"}, r'codec = "raw" write \[codec\] name = "raw"'),
        ({"dataset": "digits"}, r'write \[task\] name = "digits"'),
        ({"wcc": 0.1}, r"write \[objective\.wcc\] weight = 0\.1"),
        ({"wire": "max"}, r'write \[wire\] preset = "max"'),
        ({"detector": "contra"}, r"write \[detector\.contra\]$"),
        ({"threshold": 3}, r"write \[detector\.NAME\] threshold = 3"),
        ({"nonsense": 1}, r"expected a table such as \[codec\], got nonsense = 1"),
    ],
)
def test_a_file_without_tables_is_refused_with_the_table_to_write(old, instead):
    with pytest.raises(
        ConfigError, match=f"an experiment file has tables: .*{instead}"
    ):
        make_experiment(old)


def test_every_setting_of_the_old_form_has_a_place_in_the_new_one():
    for name in known_settings():
        with pytest.raises(ConfigError, match=rf"instead of {name} = .* write \["):
            make_experiment({name: "name:1" if name == "objective" else "name"})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("0.5", 0.5),
        ("true", True),
        ("iid", "iid"),
        ("[8, 16]", [8, 16]),
        ('"8"', "8"),
        (" raw ", "raw"),
        (8, 8),
    ],
)
def test_a_text_has_the_same_value_as_in_a_file(text, value):
    assert parse_value(text) == value
    assert parse_change(f"name={text}") == ("name", value)
