"""The terminal: figures go to standard output, everything else to standard error."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape

from lightsplit.errors import LightSplitError

ERROR_EXIT = 1
FLAGGED_EXIT = 3  # exit code of a run that a detector ended
NO_SETTING_EXIT = 4  # exit code of an advice that found nothing within the limits
INTERRUPTED_EXIT = 130

out = Console()
err = Console(stderr=True)


@contextmanager
def reported_errors() -> Iterator[None]:
    """Show an error of LightSplit as one line and exit with code 1."""
    try:
        yield
    except LightSplitError as error:
        fail(str(error))
    except OSError as error:  # a full disk, a folder without write permission
        fail(f"{error.filename or 'the system'}: {error.strerror or error}")


def fail(message: str) -> None:
    """Print an error and exit with code 1."""
    err.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True, highlight=False)
    raise SystemExit(ERROR_EXIT)


def warn(message: str) -> None:
    """Print one line to standard error and continue."""
    err.print(message, soft_wrap=True, highlight=False, markup=False)


def alarm(message: str) -> None:
    """Print a warning that stands out, and continue."""
    text = f"[bold white on red] WARNING [/] {escape(message)}"
    err.print(text, soft_wrap=True, highlight=False)


def print_json(value: Any) -> None:
    """Write ``value`` to standard output and nothing else."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def bytes_text(count: float) -> str:
    """Return a number of bytes with a readable unit.

    Example:
        >>> bytes_text(1536)
        '1.5 KiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def figure_text(name: str, value: float | None) -> str:
    """Return a test figure in readable form; an accuracy becomes a percentage.

    Example:
        >>> figure_text("accuracy", 0.5), figure_text("loss", 1.23456)
        ('accuracy 50.00%', 'loss 1.235')
    """
    if value is None:
        return f"{name} –"
    is_share = name == "accuracy"
    return f"{name} {value:.2%}" if is_share else f"{name} {value:.4g}"
