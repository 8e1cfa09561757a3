"""An environment that holds the built wheel and exactly the libraries it asks for.

    source ──pip wheel──► lightsplit.whl ──pip install --no-deps──► new environment
    its requirements, and theirs ──linked from this environment──┘

Nothing is downloaded and torch is not copied. A library that the wheel's metadata does
not ask for cannot be imported there.
"""

import os
import shutil
import subprocess
import sys
from importlib.metadata import distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]
SOURCE = ("pyproject.toml", "README.md", "LICENSE", "src", "experiments")


class EmptyEnvironment:
    """A new environment at ``folder`` with LightSplit's wheel and perhaps an extra."""

    def __init__(self, folder, wheel, *, extra=""):
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        target = folder / "environment"
        _python("-m", "venv", "--without-pip", target)
        self.commands = target / "bin"
        pip = ("-m", "pip", "--python", self.commands / "python", "install", "--quiet")
        _python(*pip, "--no-deps", "--no-index", wheel)
        (site,) = target.glob("lib/python*/site-packages")
        (lightsplit,) = distributions(name="lightsplit", path=[str(site)])
        for name in _closure(lightsplit.requires, extra):
            _link(distribution(name), site)

    def start(self, *arguments):
        """Start the installed command in a folder and an environment of its own."""
        return subprocess.Popen(
            [self.commands / "lightsplit", *map(str, arguments)],
            cwd=self.home,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments, code=0):
        """Run a command to its end; return its output and its errors."""
        process = self.start(*arguments)
        out, errors = process.communicate(timeout=400)
        assert process.returncode == code, errors
        return out, errors


def build_wheel(folder):
    """Return the wheel of this source tree, built in ``folder``."""
    source = folder / "source"
    source.mkdir()
    for name in SOURCE:
        if (ROOT / name).is_dir():
            leave = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, source / name, ignore=leave)
        else:
            shutil.copy(ROOT / name, source)
    pip = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    _python(*pip, "--no-index", "--wheel-dir", folder, source)
    (wheel,) = folder.glob("lightsplit-*.whl")
    return wheel


def _python(*arguments):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr


def _closure(lines, extra):
    """Return the names of all distributions that ``lines`` ask for, one by another."""
    found, seen = set(), set()
    left = [(line, extra) for line in lines]
    while left:
        line, extra = left.pop()
        asked = Requirement(line)
        if asked.marker and not asked.marker.evaluate({"extra": extra}):
            continue
        found.add(asked.name)
        for chosen in {"", *asked.extras}:
            if (asked.name, chosen) not in seen:
                seen.add((asked.name, chosen))
                needs = distribution(asked.name).requires or ()
                left += [(need, chosen) for need in needs]
    return found


def _link(installed, site):
    """Link the packages and files of a distribution into ``site``."""
    for file in installed.files:
        if ".." in file.parts or file.suffix == ".pth":
            continue
        place = _package(installed, Path(file))
        link = site / place
        if not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(Path(installed.locate_file(place)))


def _package(installed, file):
    """Return the outermost package around ``file``, or the file itself."""
    for folder in reversed(file.parents[:-1]):
        if Path(installed.locate_file(folder / "__init__.py")).is_file():
            return folder
    return file
