"""Examples in docstrings are run."""

import doctest
import importlib
import pkgutil

import pytest

import lightsplit

pytestmark = pytest.mark.slow

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(lightsplit.__path__, "lightsplit.")
    if "_pb" not in module.name
)


@pytest.mark.parametrize("name", ["lightsplit", *MODULES])
def test_the_examples_of_a_module_are_true(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0


def test_the_front_door_has_an_example():
    assert doctest.testmod(lightsplit).attempted > 5
