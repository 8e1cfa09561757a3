"""Advice: which cut, codec and objectives keep within given limits of leakage."""

from lightsplit.advice.choosing import Advice, advise, find_candidates
from lightsplit.advice.files import summary, write_advice
from lightsplit.advice.limits import Limits
from lightsplit.advice.search import (
    LADDER,
    Choices,
    Priced,
    affordable,
    make_search,
    price_cells,
)

__all__ = [
    "LADDER",
    "Advice",
    "Choices",
    "Limits",
    "Priced",
    "advise",
    "affordable",
    "find_candidates",
    "make_search",
    "price_cells",
    "summary",
    "write_advice",
]
