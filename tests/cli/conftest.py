"""The command line in this process, with settings that take no time."""

import threading

import pytest
from typer.testing import CliRunner

from lightsplit.cli.app import app
from lightsplit.data import folder

QUICK = ["--train-limit", "60", "--test-limit", "20", "--clients", "3"]
QUICK += ["--batch-size", "10", "--epochs", "2", "--turn-steps", "1"]


@pytest.fixture(scope="session")
def quick():
    return list(QUICK)


@pytest.fixture
def lightsplit():
    """Return what runs a command; an error that is not LightSplit's own fails."""

    def call(*arguments, code=0):
        result = CliRunner().invoke(
            app, list(map(str, arguments)), env={"COLUMNS": "200"}
        )
        for thread in threading.enumerate():
            if type(thread).__name__ == "_RefreshThread":  # rich does not wait for it
                thread.join(timeout=60)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.fixture
def refused(lightsplit):
    """Return what runs a command that must end in one line, which it returns."""

    def call(*arguments):
        result = lightsplit(*arguments, code=1)
        assert result.stdout == ""
        warnings, found, _ = result.stderr.partition("error: ")
        assert found, result.stderr
        assert all("WARNING" in one for one in warnings.splitlines()), result.stderr
        assert result.stderr.count("error:") == 1
        assert "Traceback" not in result.stderr
        return result.stderr.strip()

    return call


@pytest.fixture
def offline(monkeypatch):
    """Point every download at a closed port of this machine."""
    for dataset in folder.ADDRESSES:
        monkeypatch.setitem(folder.ADDRESSES, dataset, "http://127.0.0.1:9/")
