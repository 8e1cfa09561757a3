"""A card as PDF, for boards that want paper."""

from pathlib import Path
from typing import Any

from lightsplit.extras import require
from lightsplit.reports.cards.content import Card
from lightsplit.reports.cards.sections import Section
from lightsplit.results import atomic

FONT = "Helvetica"
# The built-in fonts of PDF have no other letters than Latin-1.
_HEADING_ROOM = 35  # millimetres; a heading with less below it goes to the next page
LETTERS = {"–": "-", "—": "-", "’": "'", "“": '"', "”": '"', "ε": "epsilon", "·": "-"}


def write_card_pdf(card: Card, path: Path) -> None:
    """Write the document atomically."""
    library = require("fpdf", extra="reports", purpose="a card")
    pdf: Any = library.FPDF(format="A4")
    pdf.set_title(_latin(card.title))
    pdf.set_margin(18)
    pdf.set_auto_page_break(auto=True, margin=18)
    pdf.add_page()
    _line(pdf, card.title, size=20, style="B", after=4)
    for section in card.sections:
        _write(pdf, section)
    atomic.write_bytes(path, bytes(pdf.output()))


def _write(pdf: Any, section: Section) -> None:
    if pdf.will_page_break(_HEADING_ROOM):
        pdf.add_page()
    _line(pdf, section.heading, size=14, style="B", before=4, after=1)
    for paragraph in section.text:
        text = f"- {paragraph}" if section.are_points else paragraph
        _line(pdf, text, size=10.5, after=1.5)
    if section.rows:
        _table(pdf, section)
    for caption, file in section.pictures:
        _line(pdf, caption, size=9, before=2, after=0.5)
        pdf.image(file, w=pdf.epw)


def _line(
    pdf: Any,
    text: str,
    *,
    size: float,
    style: str = "",
    before: float = 0,
    after: float = 0,
) -> None:
    pdf.set_font(FONT, style, size)
    pdf.ln(before)
    pdf.multi_cell(0, size * 0.5, _latin(text), new_x="LMARGIN", new_y="NEXT")
    pdf.ln(after)


def _table(pdf: Any, section: Section) -> None:
    pdf.set_font(FONT, "", 9.5)
    lines = [section.head, *section.rows] if section.head else section.rows
    with pdf.table(
        first_row_as_headings=bool(section.head),
        borders_layout="HORIZONTAL_LINES",
        line_height=5,
        padding=0.8,
        text_align="LEFT",
    ) as table:
        for values in lines:
            row = table.row()
            for value in values:
                row.cell(_latin(value))


def _latin(text: str) -> str:
    for letter, plain in LETTERS.items():
        text = text.replace(letter, plain)
    return text.encode("latin-1", "replace").decode("latin-1")
