import pytest

from lightsplit.codecs import CODECS, PROJECTIONS
from lightsplit.data import DATASETS
from lightsplit.errors import ConfigError, UnknownNameError
from lightsplit.models import MODELS
from lightsplit.registry import Registry, unknown_name


@pytest.fixture
def shapes():
    registry = Registry("shape")
    registry.register("square")(lambda side=1: side * side)
    registry.register("circle")(lambda radius=1: 3 * radius)
    return registry


def test_a_part_is_built_by_its_name_with_its_options(shapes):
    assert shapes.create("square", side=3) == 9
    assert shapes.get("circle")() == 3


def test_names_are_in_alphabetical_order(shapes):
    assert shapes.names() == ["circle", "square"]


def test_registering_returns_the_part_itself(shapes):
    def line():
        return 0

    assert shapes.register("line")(line) is line


def test_a_name_is_given_once(shapes):
    with pytest.raises(ConfigError, match="shape 'square' is already registered"):
        shapes.register("square")


def test_an_unknown_name_lists_the_known_ones_and_the_nearest(shapes):
    with pytest.raises(UnknownNameError) as caught:
        shapes.create("sqare")
    expected = "unknown shape 'sqare'; known: circle, square; did you mean 'square'?"
    assert str(caught.value) == expected


def test_nothing_is_suggested_where_nothing_is_near(shapes):
    with pytest.raises(UnknownNameError, match=r"known: circle, square$"):
        shapes.get("tetrahedron")


def test_an_empty_registry_knows_none():
    assert unknown_name("shape", "x", []).endswith("known: none")


@pytest.mark.parametrize("registry", [CODECS, DATASETS, MODELS, PROJECTIONS])
def test_every_part_of_the_library_says_what_it_is(registry):
    assert registry.names()
    assert all((registry.get(name).__doc__ or "").strip() for name in registry.names())
