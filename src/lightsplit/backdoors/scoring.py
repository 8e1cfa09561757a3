"""The quality of a verdict, given the malicious clients."""

from collections.abc import Collection
from typing import NamedTuple


class Detection(NamedTuple):
    """Precision, recall and F1; None if nobody is malicious or nobody is flagged.

    F1 is 0, not None, if somebody is malicious and no flag is right.
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
