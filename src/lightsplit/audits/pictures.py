"""Pictures of the reconstructions of attacks, for the run folder's images/.

    audit-originals.png        a strip of the first targets
    audit-decoder.png          a strip per attack and form
    audit.png                  all strips, one row each, with their names
    shown-….safetensors        ``originals`` and ``reconstructions`` of the first 20
                               targets, uint8 (20, C, H, W), to compare runs with

Every strip is a file of its own, so that an audit with one more attack can redraw
audit.png from the strips of the earlier ones.
"""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from lightsplit.extras import require
from lightsplit.results import atomic, grids, tensors

COLUMNS = 10
SHOWN = 20  # images kept for grids across runs, as in the paper's figures
ORIGINALS = "originals"


def write_strip(folder: Path, name: str, images: Tensor) -> Path:
    """Write the first images side by side, clipped to [0, 1], as audit-NAME.png."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"audit-{name}.png"
    atomic.write_bytes(path, grids.as_png(grids.make_strip(images[:COLUMNS])))
    return path


def write_shown(folder: Path, name: str, originals: Tensor, images: Tensor) -> Path:
    """Write the first originals and reconstructions as shown-NAME.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"shown-{name}.safetensors"
    pairs = {"originals": originals, "reconstructions": images}
    shown = {key: grids.as_bytes(each[:SHOWN]) for key, each in pairs.items()}
    tensors.save(path, shown)
    return path


def write_grid(folder: Path, names: Sequence[str]) -> Path:
    """Write audit.png from the strips of ``names`` that exist, originals first."""
    pillow = require("PIL.Image", extra="audit")
    rows = [
        grids.Row(name, pillow.open(folder / f"audit-{name}.png").convert("RGB"))
        for name in (ORIGINALS, *names)
        if (folder / f"audit-{name}.png").is_file()
    ]
    path = folder / "audit.png"
    atomic.write_bytes(path, grids.as_png(grids.make_grid(rows)))
    return path
