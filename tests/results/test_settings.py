"""Names of settings: tables, dotted names and short names are one another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightsplit.results.settings import SHORT_NAMES, flatten, merge, nest, short_name

WORDS = st.text("abcxyz_", min_size=1, max_size=4)
TABLES = st.recursive(
    st.dictionaries(WORDS, st.integers(), min_size=1, max_size=3),
    lambda inner: st.dictionaries(WORDS, inner, min_size=1, max_size=3),
    max_leaves=6,
)


def dotted(tables, path=""):
    found = {}
    for key, value in tables.items():
        name = f"{path}.{key}" if path else key
        found |= dotted(value, name) if isinstance(value, dict) else {name: value}
    return found


@given(TABLES)
def test_dotted_names_give_the_tables_back(tables):
    assert nest(dotted(tables)) == tables


@given(TABLES, TABLES)
def test_a_change_replaces_the_named_settings_and_keeps_the_rest(base, changes):
    before = dotted(base)
    merged = dotted(merge(base, changes))
    assert dotted(changes).items() <= merged.items()
    kept = merged.items() - dotted(changes).items()
    assert kept <= before.items()
    assert dotted(base) == before  # which is left as it was


@given(TABLES)
def test_no_change_changes_nothing(tables):
    assert merge(tables, {}) == merge({}, tables) == merge(tables, tables) == tables


def test_settings_keep_the_order_of_the_file():
    merged = merge({"b": {"x": 1, "y": 2}, "a": {}}, {"c": {}, "b": {"z": 0, "x": 5}})
    assert list(merged) == ["b", "a", "c"]
    assert merged["b"] == {"x": 5, "y": 2, "z": 0}
    assert list(merged["b"]) == ["x", "y", "z"]


def test_settings_are_flat_under_their_short_names():
    tables = {
        "task": {"name": "digits", "train_limit": 60},
        "codec": {"name": "topk", "ratio": 8.0},
        "output_codec": {"name": "linear", "size": 20},
        "wire": {"preset": "max", "format": "int8"},
        "guard": {"every": 3},
        "objective": {"wcc": {"weight": 0.1, "margin": 2}},
        "detector": {"contra": {"threshold": 1.0}, "fltrust": {}},
        "inspector": {},
    }
    assert flatten(tables) == {
        "dataset": "digits",
        "train_limit": 60,
        "codec": "topk",
        "ratio": 8.0,
        "output_codec": "linear",
        "output_size": 20,
        "wire": "max",
        "format": "int8",
        "detect_every": 3,
        "objective": "wcc",
        "wcc": 0.1,
        "objective.wcc.margin": 2,
        "detector": "contra,fltrust",
        "detector.contra.threshold": 1.0,
    }


@pytest.mark.parametrize(
    ("name", "short"),
    [
        *SHORT_NAMES.items(),
        ("training.lr", "lr"),
        ("task.model", "model"),
        ("detector.contra.threshold", "detector.contra.threshold"),
        ("attack.sdar.width", "attack.sdar.width"),
        ("lr", "lr"),
        ("codec", "codec"),
    ],
)
def test_a_short_name_is_the_last_word_but_for_a_few(name, short):
    assert short_name(name) == short
    assert short_name(short) == short
