import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lightsplit import extras
from lightsplit.errors import MissingExtraError

OPTIONAL = sorted({module for modules in extras.EXTRAS.values() for module in modules})
PROJECT = tomllib.loads(
    (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
)["project"]

IMPORT_ALL = f"""
import importlib, pkgutil, sys
for name in {OPTIONAL}:
    sys.modules[name] = None  # importing it now fails
import lightsplit
for module in pkgutil.walk_packages(lightsplit.__path__, "lightsplit."):
    if "templates." not in module.name and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from typer.testing import CliRunner
from lightsplit.cli.app import app
for command in ("--help", "train --help", "list attacks", "cost --codec raw"):
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 0, (command, result.output, result.exception)
"""


@pytest.fixture
def without(monkeypatch):
    """Return what makes a module impossible to import."""

    def hide(*names):
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return hide


@pytest.mark.slow
def test_no_module_of_the_package_needs_an_extra_to_be_imported():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_required_module_is_returned():
    assert extras.require("scipy.stats", extra="audit").rankdata([3, 1]).tolist() == [
        2,
        1,
    ]


def test_a_missing_module_gives_the_line_that_installs_it(without):
    without("scipy", "scipy.stats")
    with pytest.raises(MissingExtraError) as caught:
        extras.require("scipy.stats", extra="audit")
    assert str(caught.value) == "this needs SciPy; pip install 'lightsplit[audit]'"


def test_the_error_of_an_installed_library_that_lacks_its_own_needs_is_kept(
    tmp_path, monkeypatch, without
):
    (tmp_path / "half.py").write_text("import absent_dependency")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="absent_dependency") as caught:
        extras.require("half", extra="audit")
    assert not isinstance(caught.value, MissingExtraError)


@pytest.mark.parametrize("extra", extras.EXTRAS)
def test_an_installed_extra_passes_the_check(extra):
    extras.check(extra)


def test_the_check_names_everything_that_is_missing(without):
    without("sklearn", "PIL")
    with pytest.raises(MissingExtraError) as caught:
        extras.check("audit", purpose="an audit")
    assert str(caught.value) == (
        "an audit needs scikit-learn and Pillow; pip install 'lightsplit[audit]'"
    )


def test_the_extras_are_those_of_the_project_and_all_has_every_one():
    declared = PROJECT["optional-dependencies"]
    assert declared.keys() == {*extras.EXTRAS, "all", "dev"}
    assert declared["all"] == [f"lightsplit[{','.join(extras.EXTRAS)}]"]
    for extra, modules in extras.EXTRAS.items():
        asked = {line.partition(">")[0].lower() for line in declared[extra]}
        assert asked == {project.lower() for project in modules.values()}
