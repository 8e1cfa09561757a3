"""Tests that hold the pages to what they say: their code runs as it is written."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.M | re.S)


@pytest.fixture
def text():
    """Return what gives the text of a page."""
    return lambda page: (ROOT / page).read_text()


@pytest.fixture
def blocks(text):
    """Return what gives the code blocks of a page, of one language."""

    def find(page, language="python"):
        found = BLOCK.finditer(text(page))
        return [block["code"] for block in found if block["language"] == language]

    return find
