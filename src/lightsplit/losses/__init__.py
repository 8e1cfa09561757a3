"""Losses that a client adds to its own."""

from lightsplit.losses.wcc import within_class_compaction

__all__ = ["within_class_compaction"]
