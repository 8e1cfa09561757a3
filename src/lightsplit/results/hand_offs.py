"""The share of a run's bytes that carries heads from client to client."""

from collections.abc import Mapping

DOMINANT = 0.5
REMEDY = (
    "Longer turns (--turn-steps epoch), --hand-off int8, --hand-off-optimizer stays or "
    "private heads make them fewer or smaller."
)


def share(counts: Mapping[str, int]) -> float:
    """Return the share of hand-offs in the bytes of a run, by kind."""
    return counts.get("hand_off", 0) / max(counts.get("total", 0), 1)


def note(counts: Mapping[str, int]) -> str:
    """Return a sentence if most bytes are hand-offs, else nothing."""
    found = share(counts)
    if found <= DOMINANT:
        return ""
    return f"{found:.0%} of the bytes are hand-offs. {REMEDY}"
