"""A benchmark as a command: measure, print JSON."""

import argparse
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

Size = TypeVar("Size")


def print_measured(
    description: str,
    measure: Callable[..., object],
    *,
    whole: Size,
    quick: Size,
    parts: Sequence[str] = (),
) -> None:
    """Measure at full size, or with ``--quick`` at one that only shows that it runs.

    Where there are ``parts``, ``measure`` takes those to measure, all or one by name.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    if parts:
        parser.add_argument("--part", choices=parts, help="only this; default: all")
    asked = parser.parse_args()
    size = quick if asked.quick else whole
    chosen = [[asked.part] if asked.part else list(parts)] if parts else []
    print(json.dumps(measure(size, *chosen), indent=2))
