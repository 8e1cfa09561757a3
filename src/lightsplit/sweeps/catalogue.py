"""The built-in sweeps, and how a name becomes a file.

They are looked for in ./experiments, in the source tree, and among the data files of
the installed package.
"""

import sys
from pathlib import Path

from lightsplit.errors import ConfigError
from lightsplit.registry import unknown_name

PLACES = (
    Path("experiments"),
    Path(__file__).parents[3] / "experiments",
    Path(sys.prefix) / "share" / "lightsplit" / "experiments",
)


def catalogue() -> dict[str, Path]:
    """Return the file of every known sweep by its name."""
    found: dict[str, Path] = {}
    for place in PLACES:
        for path in sorted(place.glob("*.toml")):
            found.setdefault(path.stem, path)
    return found


def find_sweep(name: str) -> Path:
    """Return the file called ``name``: a path, or a name in the catalogue."""
    if Path(name).is_file():
        return Path(name)
    known = catalogue()
    if name not in known:
        raise ConfigError(
            f"{name} is neither a file nor a known sweep: "
            f"{unknown_name('sweep', name, list(known))}"
        )
    return known[name]
