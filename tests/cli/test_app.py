"""The options before a command, and completion by the shell."""

import os
import subprocess
import sys
from importlib.metadata import version

import pytest


def test_the_version_is_that_of_the_installed_package(lightsplit):
    assert lightsplit("--version").stdout == f"lightsplit {version('lightsplit')}\n"


def complete(line):
    """Return what bash would be offered after ``line``."""
    program = "from lightsplit.cli.app import app; app(prog_name='lightsplit')"
    environment = {
        **os.environ,
        "_LIGHTSPLIT_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "offered"),
    [("lightsplit tr", ["train"]), ("lightsplit train --cod", ["--codec"])],
)
def test_bash_completes_commands_and_their_options(line, offered):
    assert complete(line) == offered


def test_help_says_how_completion_is_installed(lightsplit):
    assert "--install-completion" in lightsplit("--help").stdout
