"""Links between pages lead somewhere, and the index has every page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#]*)(?:#(?P<part>[^)]*))?\)")
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md")
    for path in ROOT.glob(pattern)
)


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page, text):
    file = ROOT / page
    for link in LINK.finditer(text(page)):
        target = (file.parent / link["path"]).resolve() if link["path"] else file
        assert target.exists(), link[0]
        if link["part"]:
            assert link["part"] in anchors(target), link[0]


def test_the_index_has_every_page(text):
    index = text("docs/index.md")
    for page in PAGES:
        if page.startswith("docs/") and page != "docs/index.md":
            assert f"({page.removeprefix('docs/')})" in index, page


@pytest.mark.parametrize("page", PAGES)
def test_lines_are_short(page, text):
    prose = [line for line in text(page).splitlines() if not line.startswith("|")]
    assert [line for line in prose if len(line) > 120] == []
