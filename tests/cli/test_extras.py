"""Commands without the extra that they need end in the line that installs it."""

import sys

import pytest

COMMANDS = {
    "audit": ("audit", "sklearn"),
    "report": ("reports", "matplotlib"),
    "demo": ("reports", "jinja2"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_extra_is_one_sentence(refused, tmp_path, monkeypatch, command):
    extra, module = COMMANDS[command]
    monkeypatch.setitem(sys.modules, module, None)
    options = ["--out", tmp_path / "out"] if command == "demo" else [tmp_path]
    message = refused(command, *options)
    assert message.endswith(f"; pip install 'lightsplit[{extra}]'")
    assert "\n" not in message
    assert list(tmp_path.iterdir()) == []


def test_a_download_without_pooch_names_the_extra(refused, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    folder, out = tmp_path / "data", tmp_path / "out"
    message = refused("train", "--dataset", "mnist", "--data-dir", folder, "--out", out)
    assert message == (
        f"error: downloading mnist to {folder / 'mnist'} needs pooch; "
        "pip install 'lightsplit[data]'"
    )
