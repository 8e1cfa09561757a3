"""Several detectors that judge one run on the same evidence.

Only the first one acts on its flags. A detector that judges single turns must be the
only one: it needs other evidence, at other times.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lightsplit.backdoors.detectors.base import DETECTORS, Detector
from lightsplit.errors import ConfigError


def check_company(names: Sequence[str]) -> None:
    """Refuse other detectors beside one that judges single turns."""
    alone = [n for n in names if getattr(DETECTORS.get(n), "judges_turns", False)]
    if alone and len(names) > 1:
        raise ConfigError(
            f"{alone[0]} judges single turns and must be the only detector, "
            f"got {', '.join(names)}"
        )


def make_detectors(
    chosen: Mapping[str, Mapping[str, Any]], *, clients: int
) -> tuple[Detector, ...]:
    """Return the detectors by name, each with its own options."""
    check_company(list(chosen))
    return tuple(
        DETECTORS.create(name, clients=clients, **options)
        for name, options in chosen.items()
    )
