"""How good a verdict was, once it is known who was malicious."""

from collections.abc import Collection
from typing import NamedTuple


class Detection(NamedTuple):
    """Precision, recall and F1; None where there was nothing to find or nobody flagged.

    F1 is 0, not None, where somebody was malicious and nobody rightly flagged.
    """

    precision: float | None
    recall: float | None
    f1: float | None


def score_detection(flagged: Collection[int], malicious: Collection[int]) -> Detection:
    """Compare the flagged clients with the malicious ones.

    Example:
        >>> score_detection({1, 2}, {2})
        Detection(precision=0.5, recall=1.0, f1=0.6666666666666666)
    """
    hits = len(set(flagged) & set(malicious))
    total = len(set(flagged)) + len(set(malicious))
    return Detection(
        precision=hits / len(set(flagged)) if flagged else None,
        recall=hits / len(set(malicious)) if malicious else None,
        f1=2 * hits / total if total else None,
    )
