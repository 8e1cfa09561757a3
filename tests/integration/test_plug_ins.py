"""Another package's parts are used like ours, and no line of ours knows them.

The package in plug_in/ is installed for real, into a folder that only these commands
see.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lightsplit

SOURCE = Path(__file__).parent / "plug_in"
PARTS = {
    "tasks": "stripes",
    "models": "stripenet",
    "codecs": "halves",
    "output-codecs": "first-values",
    "objectives": "small-codes",
    "attacks": "grey",
    "detectors": "loudest",
    "metrics": "brightness",
}
SMALL = ("--task", "stripes", "--clients", 2, "--epochs", 2)
USES_ALL = (
    *("--model", "stripenet", "--cut", "late", "--codec", "halves:keep=2"),
    *("--output-codec", "first-values:flip=true", "--output-size", 8),
    *("--objective", "small-codes:0.1,power=1.5", "--detector", "loudest"),
    *("--gain", 2, "--set", "task.noise=0.2"),
)

SCRIPT = """
import json, sys, traceback
from typer.testing import CliRunner
from lightsplit.cli.app import app

for line in sys.stdin:
    done = CliRunner().invoke(app, json.loads(line))
    is_crash = done.exc_info and not isinstance(done.exception, SystemExit | None)
    trace = "".join(traceback.format_exception(*done.exc_info)) if is_crash else ""
    print(json.dumps((done.exit_code, done.stdout, done.stderr + trace)), flush=True)
"""


class Home:
    """A folder to run commands in, with the plug-in installed beside LightSplit.

    One process runs all of its commands: most take less time than to import torch.
    """

    def __init__(self, folder, site):
        self.folder = folder
        path = [site, Path(lightsplit.__file__).parents[1]]
        self._process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(map(str, path)),
                "OMP_NUM_THREADS": "1",
                "COLUMNS": "200",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments, code=0):
        """Run a command to its end; return its output, or its errors if it fails."""
        returned, said, error = self.result(*arguments)
        assert returned == code, error
        assert "Traceback" not in error
        return error if code else said

    def result(self, *arguments):
        """Run a command to its end; return its exit code, its output and its errors."""
        print(json.dumps([*map(str, arguments)]), file=self._process.stdin, flush=True)
        return tuple(json.loads(self._process.stdout.readline()))

    def close(self):
        self._process.communicate()

    def record(self, run):
        return json.loads((self.folder / run / "record.json").read_text())


def install(folder):
    """Install a copy of the package, since a build leaves files in its source."""
    source, site = folder / "source", folder / "site"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    pip = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation")
    done = subprocess.run(
        [sys.executable, *pip, "--no-index", "--target", str(site), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return install(tmp_path_factory.mktemp("plug_in"))


@pytest.fixture(scope="module")
def home(site, tmp_path_factory):
    """A place with one run that has every part of the plug-in."""
    home = Home(tmp_path_factory.mktemp("home"), site)
    home.run("train", *SMALL, *USES_ALL, "--out", "all")
    yield home
    home.close()


def test_every_part_is_listed(home):
    for kind, name in PARTS.items():
        assert name in json.loads(home.run("list", kind, "--json"))


def test_a_run_uses_every_part_with_its_options(home):
    record = home.record("all")
    tables = record["experiment"]
    assert tables["task"]["name"] == "stripes"
    assert (tables["task"]["model"], tables["task"]["noise"]) == ("stripenet", 0.2)
    assert tables["codec"] == {"name": "halves", "keep": 2}
    assert tables["output_codec"] == {"name": "first-values", "size": 8, "flip": True}
    assert tables["objective"] == {"small-codes": {"weight": 0.1, "power": 1.5}}
    assert tables["detector"] == {"loudest": {"gain": 2.0}}
    assert (record["activation_size"], record["code_size"]) == (256, 128)
    assert record["output_size"] == 8
    assert "loudest" in json.dumps(record["detection"])


def test_the_task_decides_what_is_measured_and_monitored(home):
    record = home.record("all")
    assert record["monitor"]["name"] == "f1"
    assert record["monitor"]["best"] == record["best_test_f1"]
    assert {"test_loss", "test_accuracy", "test_f1"} <= record.keys()


def test_a_label_has_what_differs_from_the_parts_own_defaults(home):
    expected = "halves keep=2 small-codes=0.1 power=1.5 output first-values flip size=8"
    assert home.record("all")["labels"]["method"] == expected
    assert home.record("all")["labels"]["task"] == "stripes"


def test_an_option_has_a_flag_of_its_own(home):
    home.run("train", *SMALL, "--codec", "halves", "--keep", 8, "--out", "flag")
    assert home.record("flag")["experiment"]["codec"] == {"name": "halves", "keep": 8}
    assert "every so many-th value" in home.run("train", "--help")


def test_a_model_runs_with_a_task_of_ours_and_ours_with_theirs(home):
    home.run("train", "--model", "stripenet", "--max-steps", 2, "--out", "digits")
    assert home.record("digits")["experiment"]["split"]["cut"] == "early"
    home.run("train", *SMALL, "--model", "tinycnn", "--out", "tiny")
    assert home.record("tiny")["experiment"]["task"]["model"] == "tinycnn"


def test_a_run_goes_on_bit_for_bit(home):
    home.run("train", *SMALL, *USES_ALL, "--epochs", 1, "--out", "part")
    home.run("train", "--resume", "part", "--epochs", 2)
    runs = (home.folder / name / "model.safetensors" for name in ("part", "all"))
    part, whole = (path.read_bytes() for path in runs)
    assert part == whole


def test_an_audit_runs_the_attack_scores_by_the_metric_and_a_report_shows_both(home):
    home.run("train", *SMALL, *USES_ALL, "--out", "audited")
    said = home.run("audit", "audited", "--attack", "grey:shade=0.2", "--images", 16)
    assert "grey:shade=0.2" in said
    assert "brightness" in said
    entry = home.record("audited")["audit"][-1]
    assert (entry["attack"], entry["options"]) == ("grey", {"shade": 0.2})
    assert entry["metrics"]["brightness"]["mean"] > 0
    home.run("report", "audited", "-o", "report.html")
    page = (home.folder / "report.html").read_text()
    for word in ("stripes", "halves keep=2", "grey:shade=0.2", "brightness", "loudest"):
        assert word in page
    assert "halves keep=2" in home.run("compare", "audited", "--json")


def test_a_sweep_over_an_option_has_a_label_for_each_value(home):
    (home.folder / "keep.toml").write_text(
        '[base]\ntask = "stripes"\ncodec = "halves"\nclients = 2\nepochs = 1\n'
        "[grid]\nkeep = [2, 4, 8]\n"
    )
    assert "keep2" in home.run("sweep", "keep.toml", "--dry-run")
    home.run("sweep", "keep.toml", "--workers", 1, "--out", "sweep")
    lines = json.loads(home.run("compare", "sweep", "--json"))
    assert {line["method"] for line in lines} == {
        "halves",  # with its own default
        "halves keep=2",
        "halves keep=8",
    }
    assert {line["keep"] for line in lines} == {2, 4, 8}


WRONG = {
    ("--codec", "halves:kep=2"): "codec 'halves' has no option 'kep'",
    ("--codec", "halves:keep=two"): "must be a whole number, got 'two'",
    ("--codec", "halves:keep=0"): "keep must be at least 1, got 0",
    ("--codec", "halve"): "did you mean 'halves'?",
    ("--objective", "small-codes:0.1,powr=2"): "has no option 'powr'",
    ("--detector", "loudest:gian=2"): "has no option 'gian'",
    ("--model", "stripnet"): "did you mean 'stripenet'?",
}


def test_a_wrong_option_is_refused_by_the_part(home):
    for wrong, said in WRONG.items():
        code, text, error = home.result("train", *SMALL, *wrong, "--out", "wrong")
        assert (code, text) == (1, "")
        assert said in error
        assert error.count("\n") == 1
    assert not (home.folder / "wrong").exists()


@pytest.fixture(scope="module")
def broken(site, tmp_path_factory):
    """The same with a codec and an attack that cannot be imported."""
    folder = tmp_path_factory.mktemp("broken")
    shutil.copytree(site, folder / "site")
    for name in ("codec", "attack"):
        (folder / "site" / "stripes" / f"{name}.py").write_text("import not_there\n")
    home = folder / "home"
    home.mkdir()
    home = Home(home, folder / "site")
    yield home
    home.close()


def test_a_plug_in_that_does_not_import_is_told_in_one_sentence(broken):
    error = broken.run("train", *SMALL, "--codec", "halves", code=1)
    lists = [broken.result("list", kind) for kind in ("codecs", "attacks")]
    assert [(code, text) for code, text, _ in lists] == [(1, "")] * 2
    for said in (error, *(said for _, _, said in lists)):
        assert "cannot be loaded from stripes." in said
        assert "ModuleNotFoundError: No module named 'not_there'" in said
        assert said.count("\n") == 1
    assert not list(broken.folder.iterdir())


def test_a_broken_plug_in_does_not_harm_runs_without_it(broken):
    broken.run("train", *SMALL, "--codec", "raw", "--out", "fine")
    shutil.rmtree(broken.folder / "fine")
