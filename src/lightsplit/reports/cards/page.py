"""A card as one HTML page that opens from disk without any other file."""

import base64
from pathlib import Path

from lightsplit.extras import require
from lightsplit.reports.cards.content import Card
from lightsplit.results import atomic


def write_card_page(card: Card, path: Path) -> None:
    """Write the page atomically."""
    jinja2 = require("jinja2", extra="reports", purpose="a card")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lightsplit.reports", "template"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    page = environment.get_template("card.html").render(card=card, inline=_inline)
    atomic.write_text(path, page)


def _inline(file: Path) -> str:
    """Return a picture as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}"
