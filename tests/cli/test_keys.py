from typer.testing import CliRunner

from lightsplit.cli.app import app
from lightsplit.transports.sealing import SealingKey


def keys(*arguments):
    return CliRunner().invoke(app, ["keys", *map(str, arguments)])


def test_it_makes_a_key_and_says_who_gets_it(tmp_path):
    result = keys(tmp_path / "head.key")
    assert result.exit_code == 0, result.output
    key = SealingKey.load(tmp_path / "head.key")
    assert key.fingerprint in result.output
    assert "every client" in result.output
    assert "never give it to the server" in result.output


def test_the_key_itself_is_not_shown(tmp_path):
    shown = keys(tmp_path / "head.key").output
    assert (tmp_path / "head.key").read_text().partition(":")[2].strip() not in shown


def test_an_existing_file_is_kept_with_one_line_and_exit_code_1(tmp_path):
    keys(tmp_path / "head.key")
    before = (tmp_path / "head.key").read_bytes()
    result = keys(tmp_path / "head.key")
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert "will not be overwritten" in result.stderr
    assert (tmp_path / "head.key").read_bytes() == before


def test_the_help_teaches():
    assert "lightsplit keys head.key" in keys("--help").output
