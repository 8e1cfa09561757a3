"""The tests that the threat model and the protocol name for their promises exist.

A page names a file of tests, or one test of it as ``file.py::test_name``.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def missing_tests(named):
    """Return the places, of (file, test), that hold no such test, or none at all."""
    missing = []
    for place, test in named:
        path = ROOT / "tests" / place
        files = path.glob("**/test_*.py") if path.is_dir() else [path]
        text = "\n".join(file.read_text() for file in files if file.exists())
        name = test or r"test_\w+"
        if not re.search(rf"^def {name}\(", text, re.MULTILINE):
            missing.append((place, test))
    return missing


@pytest.mark.parametrize("page", ["threat-model.md", "protocol.md"])
def test_every_test_that_a_page_names_is_there(page):
    text = (ROOT / "docs" / page).read_text()
    table = text[text.index("## Where each ") :]
    named = re.findall(r"`([a-z_0-9/]+(?:\.py|/frames))(?:::(\w+))?`", table)
    assert len(named) > 20
    assert not missing_tests(named)


def test_a_test_that_is_not_there_is_missed():
    here = "docs/test_promises.py"
    named = [(here, ""), (here, "test_a_test_that_is_not_there_is_missed")]
    lost = [(here, "test_a_test"), ("docs/test_nothing.py", "")]
    assert missing_tests(named + lost) == lost


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem
)
def test_every_file_of_the_tests_that_a_text_names_is_there(page):
    named = re.findall(r"`(tests/[a-z_0-9/]+(?:\.py)?)`", page.read_text())
    assert not [name for name in named if not (ROOT / name).exists()]
