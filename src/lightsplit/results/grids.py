"""Grids of images: each row has a name, a strip of images, and figures.

name      image image image …   figures
another   image image image …   figures
"""

from collections.abc import Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from lightsplit.errors import MissingExtraError
from lightsplit.extras import require

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont, ImageFont

SMALLEST = 56  # least pixels of an image's side
GAP = 4
MARGIN = 150  # least pixels for the names
FONT_SIZE = 15


class Row(NamedTuple):
    """A strip of images with its name before and lines of text behind it."""

    name: str
    strip: "Image"
    figures: tuple[str, ...] = ()


def make_strip(images: Tensor) -> "Image":
    """Return images (N, C, H, W) side by side, clipped to [0, 1]."""
    scale = max(1, -(-SMALLEST // min(images.shape[-2:])))
    pixels = as_bytes(images)
    if pixels.shape[1] == 1:
        pixels = pixels.expand(-1, 3, -1, -1)
    pixels = pixels.repeat_interleave(scale, 2).repeat_interleave(scale, 3)
    count, _, height, width = pixels.shape
    pillow = require("PIL.Image", extra="audit")
    strip: Image = pillow.new("RGB", (count * (width + GAP) - GAP, height), "white")
    for column, image in enumerate(pixels[:, :3].permute(0, 2, 3, 1).numpy()):
        strip.paste(pillow.fromarray(image), (column * (width + GAP), 0))
    return strip


def as_bytes(images: Tensor) -> Tensor:
    """Return images as uint8; floats are clipped to [0, 1] first."""
    if images.dtype == torch.uint8:
        return images
    return images.detach().cpu().clamp(0, 1).mul(255).round().to(torch.uint8)


def make_grid(rows: Sequence[Row]) -> "Image":
    """Return the strips one below the other, each with its name and figures."""
    font = _font()
    names = [font.getlength(row.name) for row in rows]
    figures = [font.getlength(line) for row in rows for line in row.figures]
    left = max(MARGIN, round(max(names)) + 3 * GAP)
    behind = left + max(row.strip.width for row in rows) + GAP
    width = behind + (round(max(figures)) + 3 * GAP if figures else 0)
    height = sum(row.strip.height + GAP for row in rows) + GAP
    grid: Image = require("PIL.Image", extra="audit").new(
        "RGB", (width, height), "white"
    )
    draw = require("PIL.ImageDraw", extra="audit").Draw(grid)
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
def _font() -> "FreeTypeFont | ImageFont":
    """Return matplotlib's font, or Pillow's own, which has no λ.

    Only the names in a report have Greek letters, and reports need matplotlib anyway.
    """
    fonts = require("PIL.ImageFont", extra="audit")
    font: FreeTypeFont | ImageFont
    try:
        matplotlib = require("matplotlib", extra="reports")
    except MissingExtraError:
        font = fonts.load_default(FONT_SIZE)
    else:
        ttf = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
        font = fonts.truetype(ttf / "DejaVuSans.ttf", FONT_SIZE)
    return font


def as_png(picture: "Image") -> bytes:
    """Return the picture as the bytes of a PNG file, a grey one with one channel."""
    grey = picture.convert("L")
    is_grey = grey.convert(picture.mode).tobytes() == picture.tobytes()
    buffer = BytesIO()
    (grey if is_grey else picture).save(buffer, "PNG")
    return buffer.getvalue()
