"""The parts on the page work as plug-ins: installed, named and run."""

import functools
import json
import os
import subprocess
import sys
import tomllib

import pytest

pytestmark = pytest.mark.slow
PAGE = "docs/extending.md"


@pytest.fixture
def plug_in(blocks, tmp_path):
    """Install the page's package, as pip would; return the folder that it is in."""
    package = tmp_path / "my_parts"
    package.mkdir()
    (package / "__init__.py").touch()
    for code in blocks(PAGE):
        (tmp_path / code.splitlines()[0].removeprefix("# ")).write_text(code)
    (declared,) = blocks(PAGE, "toml")
    groups = tomllib.loads(declared)["project"]["entry-points"]
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{k} = {v}" for k, v in entries.items()))
    ]
    info = tmp_path / "my_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my_parts\n")
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def python(plug_in):
    """Return what runs Python in a process that has the plug-in."""

    def call(*arguments):
        path = os.pathsep.join([str(plug_in), *filter(None, sys.path)])
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=plug_in,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


@pytest.fixture
def lightsplit(python):
    return functools.partial(python, "-m", "lightsplit")


def test_every_part_of_the_page_is_declared_and_has_a_file(plug_in, blocks):
    files = {path.name for path in (plug_in / "my_parts").glob("*.py")}
    assert len(blocks(PAGE)) == 9 == len(files - {"__init__.py"})
    groups = tomllib.loads(blocks(PAGE, "toml")[0])["project"]["entry-points"]
    assert len(groups) == 9


def test_the_parts_train_and_audit_a_run(lightsplit, plug_in):
    command = "train --model dense --codec subset:ratio=4 --output-codec first"
    command += " --objective short-codes:0.01 --detector farthest"
    record = json.loads(
        lightsplit(*command.split(), "--epochs=1", "--out=run", "--json")
    )
    assert record["ratio"] == 4
    assert record["output_size"] == 48
    assert record["experiment"]["objective"] == {"short-codes": {"weight": 0.01}}
    assert record["detection"]["detector"] == "farthest"
    assert record["labels"]["method"].startswith("subset 4x short-codes=0.01")
    entries = json.loads(
        lightsplit("audit", "run", "--attack", "mixture:neighbours=2", "--json")
    )
    (mixture,) = (entry for entry in entries if entry["attack"] == "mixture")
    assert mixture["options"] == {"neighbours": 2}
    assert "largest_error" in mixture["metrics"]


def test_an_objective_takes_its_option(lightsplit):
    command = "train --objective short-codes:0.01,length=2 --epochs 1 --json"
    record = json.loads(lightsplit(*command.split()))
    objective = record["experiment"]["objective"]
    assert objective == {"short-codes": {"weight": 0.01, "length": 2.0}}


def test_a_label_protection_takes_its_option(lightsplit):
    command = "train --protect-labels white-noise:size=0.5 --epochs 1 --json"
    record = json.loads(lightsplit(*command.split()))
    assert record["experiment"]["protect_labels"] == {"white-noise": {"size": 0.5}}


def test_the_task_trains_with_its_option(lightsplit):
    command = "train --task bright --codec raw --set task.noise=0.1 --epochs 1 --json"
    record = json.loads(lightsplit(*command.split()))
    assert record["experiment"]["task"]["noise"] == 0.1
    assert record["labels"]["task"] == "bright"


LISTED = {
    "codecs": "subset",
    "output-codecs": "first",
    "objectives": "short-codes",
    "label-protections": "white-noise",
    "attacks": "mixture",
    "detectors": "farthest",
    "metrics": "largest_error",
    "models": "dense",
}
LISTS = """
import json, sys
from typer.testing import CliRunner
from lightsplit.cli.app import app

lists = [CliRunner().invoke(app, ["list", kind, "--json"]) for kind in sys.argv[1:]]
print(json.dumps([json.loads(one.stdout) for one in lists]))
"""


def test_the_parts_are_listed(python):
    lists = json.loads(python("-c", LISTS, *LISTED))
    for known, name in zip(lists, LISTED.values(), strict=True):
        assert name in known
