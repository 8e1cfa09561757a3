"""Randomised response with many choices: how often the truth is kept.

    truth ─┬─ with probability p = e^ε / (e^ε + K − 1) ──► the truth
           └─ otherwise ──► one of the K − 1 others, all equally likely

No answer is more than e^ε times as likely under one truth as under another: that is
ε-differential privacy of the truth, with nothing left over (δ = 0).
"""

import math


def kept(epsilon: float, choices: int) -> float:
    """Return the probability that randomised response keeps the truth.

    It bounds how often anybody is right who knows nothing else about it.

    Example:
        >>> round(kept(2.0, 10), 4), round(kept(8.0, 64), 3)
        (0.4509, 0.979)
    """
    return 1 / (1 + (choices - 1) * math.exp(-epsilon))


def changed(epsilon: float, choices: int) -> float:
    """Return the probability that it replaces the truth, also where that is tiny."""
    others = (choices - 1) * math.exp(-epsilon)
    return others / (1 + others)
