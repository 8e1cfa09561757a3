"""The site is built strictly, has everything, and asks no other machine."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lightsplit

ROOT = Path(__file__).parents[2]
FETCHED = re.compile(r'<(?:script|img|iframe)[^>]+src="(.*?)"|<link[^>]+href="(.*?)"')


def test_the_reference_has_every_public_name(text):
    page = text("docs/reference.md")
    for name in lightsplit.__all__:
        assert f"::: lightsplit.{name}\n" in page or f"lightsplit.{name}(" in page, name


def test_the_menu_has_every_page(text):
    menu = text("mkdocs.yml")
    for page in (ROOT / "docs").rglob("*.md"):
        assert f": {page.relative_to(ROOT / 'docs')}\n" in menu, page


@pytest.mark.slow
def test_the_site_is_built_and_fetches_nothing(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    done = subprocess.run(
        [*command, "--site-dir", tmp_path],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        for match in FETCHED.finditer(page.read_text()):
            source = match[1] or match[2]
            is_inside = source.startswith("data:")  # in the page itself
            assert is_inside or "//" not in source, (page, match[0])
