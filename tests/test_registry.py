import sys

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


GROUP = "lightsplit.shapes"
MODULE = """
def triangle(side=1):
    return side * side / 2

def square(side=1):
    return "another square"
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return what puts a distribution with entry points on the path."""

    def install(entries, module=MODULE, name="their_shapes"):
        (tmp_path / f"{name}.py").write_text(module)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\n")
        lines = "\n".join(f"{key} = {value}" for key, value in entries.items())
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}\n")

    monkeypatch.syspath_prepend(str(tmp_path))
    yield install
    sys.modules.pop("their_shapes", None)


@pytest.fixture
def open_shapes():
    """Return a registry that other packages may add to."""
    registry = Registry("shape", GROUP)
    registry.register("square")(lambda side=1: side * side)
    return registry


def test_an_installed_part_is_found_by_its_name(install, open_shapes):
    install({"triangle": "their_shapes:triangle"})
    assert open_shapes.names() == ["square", "triangle"]
    assert open_shapes.create("triangle", side=4) == 8
    assert open_shapes.get("triangle") is open_shapes.get("triangle")


def test_an_installed_part_is_not_imported_before_it_is_asked_for(install, open_shapes):
    install({"triangle": "their_shapes:triangle"}, module="1 / 0")
    assert open_shapes.names() == ["square", "triangle"]
    assert open_shapes.create("square", side=2) == 4


def test_a_part_of_ours_is_not_replaced_by_one_of_the_same_name(install, open_shapes):
    install({"square": "their_shapes:square"})
    assert open_shapes.create("square", side=3) == 9


def test_an_installed_part_is_suggested_too(install, open_shapes):
    install({"triangle": "their_shapes:triangle"})
    with pytest.raises(UnknownNameError, match="did you mean 'triangle'"):
        open_shapes.get("triangl")


@pytest.mark.parametrize(
    ("entry", "module", "reason"),
    [
        ("their_shapes:triangle", "import not_there", "ModuleNotFoundError"),
        ("their_shapes:triangle", "1 / 0", "ZeroDivisionError: division by zero"),
        ("their_shapes:triangle", "def triangle(:", "SyntaxError"),
        ("their_shapes:nothing", MODULE, "AttributeError"),
        ("no_such_module:triangle", MODULE, "ModuleNotFoundError"),
    ],
)
def test_a_broken_plug_in_is_reported_in_one_sentence(
    install, open_shapes, entry, module, reason
):
    install({"triangle": entry}, module)
    expected = f"shape 'triangle' cannot be loaded from {entry}: {reason}"
    with pytest.raises(ConfigError, match=expected) as refusal:
        open_shapes.create("triangle")
    assert "\n" not in str(refusal.value)


def test_a_registry_without_a_group_takes_nothing_from_outside(install, shapes):
    install({"triangle": "their_shapes:triangle"})
    assert shapes.names() == ["circle", "square"]
