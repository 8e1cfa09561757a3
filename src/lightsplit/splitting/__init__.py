"""Splits a model into head, backbone and tail, and merges the parts again."""

from lightsplit.splitting.cutting import legal_cuts, split
from lightsplit.splitting.parts import SplitModel, merge

__all__ = ["SplitModel", "legal_cuts", "merge", "split"]
