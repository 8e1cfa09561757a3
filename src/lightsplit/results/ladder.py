"""The ladder of a run: its attacks on the same images, which may be compared.

    entries of record.json ──ladders──► one list per client, seed, targets and number
                                        of images, without trivial attacks and labels

Figures on other images, or on more of them, are other figures: re-identification among
1,000 images is harder than among 64. So the worst of a ladder is taken within one list.
"""

from collections.abc import Sequence
from typing import Any

Entry = dict[str, Any]
SAME = ("client", "seed", "targets", "images")  # equal for all attacks of a ladder
FACTS = ("membership", "property")  # kinds of entries that tell yes from no
NO_IMAGES = ("labels", *FACTS)  # kinds of entries without reconstructions
BLIND = ("all-black", "class-mean", "mean-image")  # trivial attackers that see no code


def ladders(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return the attacks that returned images, those on the same images together."""
    found: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in entries:
        if entry.get("kind") not in ("trivial", *NO_IMAGES):
            key = tuple(entry.get(name) for name in SAME)
            found.setdefault(key, []).append(entry)
    return list(found.values())


def main_ladder(entries: Sequence[Entry]) -> list[Entry]:
    """Return the ladder with the most images, the latest of these; empty if none."""
    return max(reversed(ladders(entries)), key=_images, default=[])


def blind_guesses(entries: Sequence[Entry]) -> list[Entry]:
    """Return the trivial attackers without codes, on the images of the main ladder."""
    ladder = main_ladder(entries)
    if not ladder:
        return []
    return [
        entry
        for entry in entries
        if entry.get("kind") == "trivial"
        and entry.get("attack") in BLIND
        and all(entry.get(name) == ladder[0].get(name) for name in SAME)
    ]


def main_leakage(record: Entry) -> dict[str, Entry]:
    """Return the worst figures by metric of the run's main ladder; empty if none."""
    groups: list[Entry] = record.get("leakage", [])
    chosen = max(reversed(groups), key=lambda one: int(one["images"]), default=None)
    return {} if chosen is None else dict(chosen["metrics"])


def _images(ladder: list[Entry]) -> int:
    return int(ladder[0].get("images") or 0)
