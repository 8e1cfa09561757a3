import csv
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from PIL import Image

from lightsplit.reports import make_report, write_files, write_page

pytestmark = pytest.mark.slow


class Outline(HTMLParser):
    """Collects what the laws below are about."""

    VOID = ("meta", "link", "img", "path", "use", "br")

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.ids, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href", "xlink:href")]
        self.ids += [attributes["id"]] if "id" in attributes else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()


def page_of(report, tmp_path):
    write_page(report, tmp_path / "report.html")
    return (tmp_path / "report.html").read_text()


def test_the_page_needs_nothing_but_itself(page):
    text = page.read_text()
    outline = Outline(text)
    assert not outline.open
    assert outline.links
    for link in outline.links:
        assert link.startswith(("data:", "#"))
    assert len(outline.ids) == len(set(outline.ids))
    inner = {link[1:] for link in outline.links if link.startswith("#")}
    assert inner <= set(outline.ids)
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", text)


def test_every_part_of_an_audited_report_is_there(audited, page):
    names = [part.name for part in audited.parts]
    assert names == [
        "runs",
        "tradeoff",
        "methods",
        "audit",
        "labels",
        "curves",
        "bytes",
        "histograms",
    ]
    assert page.read_text().count("<img ") == 4
    assert "Tom &amp; &lt;Jerry&gt;" in page.read_text()


def test_without_an_audit_the_picture_says_that_leakage_is_missing(real_runs, tmp_path):
    from lightsplit.reports import find_runs

    report = make_report(*find_runs([real_runs]))
    assert "Nothing was audited" in page_of(report, tmp_path)


def test_a_report_without_a_finished_run_still_says_why(make_run, runs_in, tmp_path):
    make_run("run").record_file.unlink()
    page = page_of(make_report(*runs_in()), tmp_path)
    assert "No run was finished" in page
    assert "Not in this report" in page


def test_tables_and_figures_are_files_too(audited, tmp_path):
    files = write_files(audited, tmp_path / "figures")
    names = {path.name for path in files}
    for picture in ("tradeoff", "curves", "bytes", "histograms"):
        assert {f"{picture}.svg", f"{picture}.png", f"{picture}.csv"} <= names
    for path in files:
        if path.suffix == ".svg":
            ElementTree.parse(path)  # noqa: S314  our own file
        elif path.suffix == ".png":
            with Image.open(path) as image:
                assert min(image.size) > 100
        else:
            assert list(csv.DictReader(path.read_text().splitlines()))


def test_the_epsilon_of_codes_stands_in_table_and_file(make_run, runs_in, tmp_path):
    promise = {"epsilon": 7.9996, "delta": 1e-05, "bits_per_sample": 90}
    make_run("one", figures={"certificate": promise})
    report = make_report(*runs_in())
    assert "ε = 8, δ = 1e-05" in page_of(report, tmp_path)
    lines = [line for table in report.tables for line in table.lines]
    (found,) = [line for line in lines if line.get("epsilon")]
    assert (found["epsilon"], found["delta"]) == (7.9996, 1e-05)


def test_a_picture_is_drawn_the_same_twice(audited):
    picture = audited.pictures[0]
    assert picture.svg() == picture.svg()


def test_an_audit_is_averaged_over_seeds(audited):
    table = next(table for table in audited.tables if table.name == "audit")
    by_method = {(row[1].text, row[2].text): row for row in table.rows}
    assert by_method["raw", "decoder adaptive"][4].text == "0.905"
    assert by_method["raw", "mean"][3].text == "–"
    assert len(table.lines) == 8
