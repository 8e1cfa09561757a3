"""The card as a page and as PDF."""

import pytest
from typer.testing import CliRunner

from lightsplit.cli.app import app
from lightsplit.reports.cards import Card, Section, write_card_page, write_card_pdf

CARD = Card(
    "Card <1>",
    [
        Section("Facts", ["Some – text."], rows=[("ε", "1")]),
        Section("Points", ["one", "two"], are_points=True),
        Section("Table", [], head=("a", "b"), rows=[("1", "2")]),
    ],
)


def test_the_page_escapes_and_has_everything(tmp_path):
    write_card_page(CARD, tmp_path / "card.html")
    text = (tmp_path / "card.html").read_text()
    assert "Card &lt;1&gt;" in text
    assert "<li>two</li>" in text
    assert "http" not in text.replace("http-equiv", "")


def test_the_document_is_a_pdf(tmp_path):
    write_card_pdf(CARD, tmp_path / "card.pdf")
    assert (tmp_path / "card.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.slow
def test_the_command_writes_both(tmp_path, make_run):
    folder = make_run("one")
    done = CliRunner().invoke(app, ["report", str(folder.path), "--card"])
    assert done.exit_code == 0, done.output
    assert (folder.path / "card.html").is_file()
    assert (folder.path / "card.pdf").is_file()
    make_run("two")
    done = CliRunner().invoke(app, ["report", str(tmp_path / "runs"), "--card"])
    assert done.exit_code == 1
    assert "a card describes one run, got 2" in done.output
