"""The terminal: figures to standard output, everything else to standard error."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape

from lightsplit.errors import LightSplitError

ERROR_EXIT = 1
FLAGGED_EXIT = 3  # a detector ended the run
INTERRUPTED_EXIT = 130

out = Console()
err = Console(stderr=True)


@contextmanager
def reported_errors() -> Iterator[None]:
    """Show what LightSplit refuses as one line and leave with exit code 1."""
    try:
        yield
    except LightSplitError as error:
        fail(str(error))
    except OSError as error:  # a full disk, a folder that may not be written
        fail(f"{error.filename or 'the system'}: {error.strerror or error}")


def fail(message: str) -> None:
    """Print an error and leave with exit code 1."""
    err.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True, highlight=False)
    raise SystemExit(ERROR_EXIT)


def print_json(value: Any) -> None:
    """Write ``value`` to standard output and nothing else."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def bytes_text(count: float) -> str:
    """Return a number of bytes for people.

    Example:
        >>> bytes_text(1536)
        '1.5 KiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
