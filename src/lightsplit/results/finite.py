"""Figures for JSON, which has no NaN and no infinity."""

import math
from typing import Any


def finite(value: Any) -> Any:
    """Return ``value`` with None in place of every number that is not finite.

    Example:
        >>> finite({"loss": float("nan"), "bytes": [1, 2]})
        {'loss': None, 'bytes': [1, 2]}
    """
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
