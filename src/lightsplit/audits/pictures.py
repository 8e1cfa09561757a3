"""Pictures of what an attack gave back, for the run folder's images/.

    audit-originals.png        a strip of the first targets
    audit-decoder.png          a strip per attack and form
    audit.png                  all strips, one row each, with their names

Every strip is a file of its own, so that an audit with one more attack adds a row and
paints the rest again from what is there.
"""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from lightsplit.results import atomic

COLUMNS = 10
SMALLEST = 56  # pixels of an image's side, at least
GAP = 4
MARGIN = 150  # for the names
ORIGINALS = "originals"


def write_strip(folder: Path, name: str, images: Tensor) -> Path:
    """Write the first images side by side, clipped to [0, 1], as audit-NAME.png."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"audit-{name}.png"
    _write(path, _strip(images[:COLUMNS]))
    return path


def write_grid(folder: Path, names: Sequence[str]) -> Path:
    """Write audit.png: the strips of ``names`` that are there, originals first."""
    rows = [
        (name, Image.open(folder / f"audit-{name}.png").convert("RGB"))
        for name in (ORIGINALS, *names)
        if (folder / f"audit-{name}.png").is_file()
    ]
    path = folder / "audit.png"
    _write(path, _grid(rows))
    return path


def _strip(images: Tensor) -> Image.Image:
    scale = max(1, -(-SMALLEST // min(images.shape[-2:])))
    pixels = images.detach().cpu().clamp(0, 1).mul(255).round().to(torch.uint8)
    if pixels.shape[1] == 1:
        pixels = pixels.expand(-1, 3, -1, -1)
    pixels = pixels.repeat_interleave(scale, 2).repeat_interleave(scale, 3)
    count, _, height, width = pixels.shape
    strip = Image.new("RGB", (count * (width + GAP) - GAP, height), "white")
    for column, image in enumerate(pixels[:, :3].permute(0, 2, 3, 1).numpy()):
        strip.paste(Image.fromarray(image), (column * (width + GAP), 0))
    return strip


def _grid(rows: Sequence[tuple[str, Image.Image]]) -> Image.Image:
    width = MARGIN + max(strip.width for _, strip in rows) + GAP
    height = sum(strip.height + GAP for _, strip in rows) + GAP
    grid = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(grid)
    font = ImageFont.load_default(14)
    top = GAP
    for name, strip in rows:
        grid.paste(strip, (MARGIN, top))
        draw.text((GAP, top + strip.height // 2 - 8), name, fill="black", font=font)
        top += strip.height + GAP
    return grid


def _write(path: Path, picture: Image.Image) -> None:
    buffer = BytesIO()
    picture.save(buffer, "PNG")
    atomic.write_bytes(path, buffer.getvalue())
