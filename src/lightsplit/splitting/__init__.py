"""Splits a model into head, backbone and tail, and merges the parts again."""

from lightsplit.splitting.arguments import call
from lightsplit.splitting.cutting import legal_cuts, split
from lightsplit.splitting.loading import empty_weights, load_part
from lightsplit.splitting.parts import SplitModel, merge
from lightsplit.splitting.running import companions_of, run_client

__all__ = [
    "SplitModel",
    "call",
    "companions_of",
    "empty_weights",
    "legal_cuts",
    "load_part",
    "merge",
    "run_client",
    "split",
]
