"""The built wheel in an environment with nothing but the libraries it asks for."""

import json
import subprocess

import pytest
from lab.empty_environment import EmptyEnvironment, build_wheel
from lab.ports import free_port

from lightsplit.extras import EXTRAS

SMALL = ["--train-limit", 60, "--test-limit", 20, "--batch-size", 20, "--epochs", 1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory, wheel):
    return EmptyEnvironment(tmp_path_factory.mktemp("plain"), wheel)


def test_the_environment_has_none_of_the_extras(environment):
    missing = {"sklearn", "scipy", "PIL", "matplotlib", "pooch", "ray", "tensorboard"}
    program = "import sys; __import__(sys.argv[1])"
    for module in sorted(missing):
        command = [environment.commands / "python", "-I", "-c", program, module]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert f"No module named '{module}'" in done.stderr
    assert missing <= {module for modules in EXTRAS.values() for module in modules}


def test_help_and_the_experiments_of_the_paper_are_there(environment):
    assert "train" in environment.run("--help")[0]
    assert "utility" in json.loads(environment.run("list", "experiments", "--json")[0])


def test_a_run_trains_on_the_digits_in_the_package(environment):
    out, _ = environment.run("train", "--clients", 2, *SMALL, "--json")
    assert json.loads(out)["steps"] == 4


def test_a_server_and_a_client_train_together(environment):
    address = f"127.0.0.1:{free_port()}"
    settings = ["--clients", 1, "--address", address, *SMALL]
    server = environment.start("serve", *settings, "--json")
    try:
        environment.run("join", *settings)
        out, errors = server.communicate(timeout=400)
    finally:
        server.kill()
        server.wait()
    assert server.returncode == 0, errors
    assert json.loads(out)["steps"] == 3


def test_split_equals_unsplit_there(environment):
    environment.run("verify", "--steps", 2)


@pytest.mark.parametrize(
    ("command", "extra"), [("audit", "audit"), ("report", "reports")]
)
def test_a_command_that_needs_an_extra_shows_how_to_install_it(
    environment, command, extra
):
    out, errors = environment.run(command, environment.home, code=1)
    assert out == ""
    assert errors.count("\n") == 1
    assert errors.endswith(f"; pip install 'lightsplit[{extra}]'\n")


def test_the_extra_is_enough_for_its_command(environment, wheel, tmp_path):
    run = tmp_path / "run"
    environment.run("train", "--clients", 2, *SMALL, "--out", run)
    audits = EmptyEnvironment(tmp_path / "audit", wheel, extra="audit")
    attacks = ["--attack", "linear", "--attack", "label-kmeans"]
    audits.run("audit", run, *attacks, "--images", 8, "--auxiliary", 20)
    assert (run / "images" / "audit.png").is_file()
    reports = EmptyEnvironment(tmp_path / "reports", wheel, extra="reports")
    reports.run("report", run, "--out", tmp_path / "report.html")
    assert "<svg" in (tmp_path / "report.html").read_text()
