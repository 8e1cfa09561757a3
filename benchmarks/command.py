"""A benchmark as a command: measure, print JSON."""

import argparse
import json
from collections.abc import Callable
from typing import TypeVar

Size = TypeVar("Size")


def print_measured(
    description: str, measure: Callable[[Size], object], *, whole: Size, quick: Size
) -> None:
    """Measure at full size, or with ``--quick`` at one that only shows that it runs."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    size = quick if parser.parse_args().quick else whole
    print(json.dumps(measure(size), indent=2))
