"""Grids of images: a strip of images per row, a name before it, figures behind it.

name      image image image …   figures
another   image image image …   figures
"""

from collections.abc import Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

SMALLEST = 56  # pixels of an image's side, at least
GAP = 4
MARGIN = 150  # for the names, at least
FONT_SIZE = 15


class Row(NamedTuple):
    """A strip of images, what it is called, and lines of text behind it."""

    name: str
    strip: Image.Image
    figures: tuple[str, ...] = ()


def make_strip(images: Tensor) -> Image.Image:
    """Return images (N, C, H, W) side by side, clipped to [0, 1]."""
    scale = max(1, -(-SMALLEST // min(images.shape[-2:])))
    pixels = as_bytes(images)
    if pixels.shape[1] == 1:
        pixels = pixels.expand(-1, 3, -1, -1)
    pixels = pixels.repeat_interleave(scale, 2).repeat_interleave(scale, 3)
    count, _, height, width = pixels.shape
    strip = Image.new("RGB", (count * (width + GAP) - GAP, height), "white")
    for column, image in enumerate(pixels[:, :3].permute(0, 2, 3, 1).numpy()):
        strip.paste(Image.fromarray(image), (column * (width + GAP), 0))
    return strip


def as_bytes(images: Tensor) -> Tensor:
    """Return images as uint8, clipped to [0, 1] if they are not so already."""
    if images.dtype == torch.uint8:
        return images
    return images.detach().cpu().clamp(0, 1).mul(255).round().to(torch.uint8)


def make_grid(rows: Sequence[Row]) -> Image.Image:
    """Return the strips one below the other, each with its name and figures."""
    font = _font()
    names = [font.getlength(row.name) for row in rows]
    figures = [font.getlength(line) for row in rows for line in row.figures]
    left = max(MARGIN, round(max(names)) + 3 * GAP)
    behind = left + max(row.strip.width for row in rows) + GAP
    width = behind + (round(max(figures)) + 3 * GAP if figures else 0)
    height = sum(row.strip.height + GAP for row in rows) + GAP
    grid = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(grid)
    top = GAP
    for row in rows:
        grid.paste(row.strip, (left, top))
        middle = top + row.strip.height // 2
        draw.text((GAP, middle), row.name, "black", font, anchor="lm")
        lines = "\n".join(row.figures)
        place = (behind + GAP, middle)
        draw.multiline_text(place, lines, "black", font, anchor="lm")
        top += row.strip.height + GAP
    return grid


@cache
def _font() -> ImageFont.FreeTypeFont:
    """Return a font that has Greek letters: Pillow's own has no λ."""
    from matplotlib import get_data_path  # slow to import, and only drawing needs it

    file = Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    return ImageFont.truetype(file, FONT_SIZE)


def as_png(picture: Image.Image) -> bytes:
    """Return the picture as the bytes of a PNG file."""
    buffer = BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()
