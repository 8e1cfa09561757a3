"""The tests that the threat model and the protocol name for their promises exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["threat-model.md", "protocol.md"])
def test_every_test_that_a_page_names_is_there(page):
    text = (ROOT / "docs" / page).read_text()
    table = text[text.index("## Where each ") :]
    named = re.findall(r"`([a-z_0-9/]+(?:\.py|/frames))`", table)
    assert len(named) > 20
    missing = [name for name in named if not (ROOT / "tests" / name).exists()]
    assert not missing


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem
)
def test_every_file_of_the_tests_that_a_text_names_is_there(page):
    named = re.findall(r"`(tests/[a-z_0-9/]+(?:\.py)?)`", page.read_text())
    assert not [name for name in named if not (ROOT / name).exists()]
