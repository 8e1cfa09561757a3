"""Calls into a user's own code: any error becomes one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

from lightsplit.errors import ConfigError, LightSplitError


@contextmanager
def one_line_errors(
    what: str, kind: type[LightSplitError] = ConfigError
) -> Iterator[None]:
    """Raise an error of one line that starts with ``what``, whatever the block raises.

    Our own errors pass as they are.

    Args:
        what: the failure, as in "cannot import my_task.py".
        kind: of the error to raise.
    """
    try:
        yield
    except LightSplitError:
        raise
    except Exception as error:  # the user's code may raise anything
        reason = (str(error).splitlines() or [""])[0]
        raise kind(f"{what}: {type(error).__name__}: {reason}") from error
