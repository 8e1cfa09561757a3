"""The options of the status port."""

import os
import re
import urllib.request

import pytest

from lightsplit.cli.status import read_token, shown_status
from lightsplit.errors import ConfigError
from lightsplit.results import RunFolder


def write(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


def test_there_is_no_port_by_default(tmp_path, capsys):
    with shown_status(None, None, RunFolder(tmp_path)) as show:
        show(None)
    assert not capsys.readouterr().err


def test_the_port_is_open_while_the_run_goes_on(tmp_path, capsys):
    with shown_status("127.0.0.1:0", None, RunFolder(tmp_path)):
        port = re.search(r"status on port (\d+)", capsys.readouterr().err)[1]
        url = f"http://127.0.0.1:{port}/healthz"
        with urllib.request.urlopen(url, timeout=120) as reply:
            assert reply.read() == b"ok\n"
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url, timeout=120)


def test_a_token_without_a_port_is_refused(tmp_path):
    with (
        pytest.raises(ConfigError, match="needs --status-address"),
        shown_status(None, tmp_path / "token", RunFolder(tmp_path)),
    ):
        pass


def test_a_token_is_read_from_a_file_of_its_owner(tmp_path):
    token = "a" * 32
    assert read_token(write(tmp_path / "good", f"{token}\n")) == token


@pytest.mark.parametrize("text", ["short", "", "ä" * 40, "a" * 20 + "\nb"])
def test_what_is_no_token_is_refused(tmp_path, text):
    with pytest.raises(ConfigError, match="at least 16 ASCII characters"):
        read_token(write(tmp_path / "bad", text))


@pytest.mark.skipif(os.name != "posix", reason="no modes here")
def test_a_token_that_others_can_read_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="chmod 600"):
        read_token(write(tmp_path / "open", "a" * 32, mode=0o644))
