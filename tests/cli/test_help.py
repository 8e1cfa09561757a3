import pytest
import typer

from lightsplit.cli import console
from lightsplit.cli.app import app

pytestmark = pytest.mark.slow

COMMANDS = typer.main.get_command(app).commands


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_every_option_of_a_command(lightsplit, name):
    text = lightsplit(name, "--help").stdout
    flags = [f for p in COMMANDS[name].params for f in p.opts if f.startswith("--")]
    assert [flag for flag in flags if flag not in text] == []


def test_help_shows_every_command(lightsplit):
    text = lightsplit("--help").stdout
    assert all(name in text for name in COMMANDS)


def test_an_unknown_command_is_a_wrong_usage(lightsplit):
    lightsplit("trian", code=2)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1024**4, "1.0 TiB")],
)
def test_bytes_are_written_for_people(count, text):
    assert console.bytes_text(count) == text


def test_square_brackets_in_an_error_are_shown_as_they_are(capsys):
    with pytest.raises(SystemExit):
        console.fail("got [bold]")
    assert capsys.readouterr().err == "error: got [bold]\n"
