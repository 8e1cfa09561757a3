"""A section of a card: text, a table, pictures."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Section:
    """One section.

    Attributes:
        heading: of the section.
        text: its paragraphs.
        head: names of the table's columns; empty for a list of facts.
        rows: of the table.
        pictures: captions and files.
        are_points: whether the paragraphs are the points of a list.
    """

    heading: str
    text: list[str]
    head: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)
    pictures: list[tuple[str, Path]] = field(default_factory=list)
    are_points: bool = False


def bytes_text(count: float) -> str:
    """Return a number of bytes with a fitting unit.

    Example:
        >>> bytes_text(512), bytes_text(5_538_750)
        ('512 B', '5.3 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} B" if unit == "B" else f"{count:,.1f} {unit}"
