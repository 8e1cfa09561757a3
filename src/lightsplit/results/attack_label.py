"""The label of an attack in tables, reports and file names."""

import re
from typing import Any

from lightsplit.part_options import write_part


def attack_label(entry: dict[str, Any]) -> str:
    """Return the attack of an audit's entry with the options it was given.

    Example:
        >>> attack_label({"attack": "decoder", "options": {"blocks": 4}})
        'decoder:blocks=4'
    """
    return write_part(entry["attack"], entry.get("options") or {})


def as_file_name(label: str) -> str:
    """Return a label reduced to characters that every file system allows."""
    return re.sub(r"[^\w.,=+-]", "_", label)
