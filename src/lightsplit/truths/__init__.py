"""Kinds of truth: what an attack is to find out about a sample, and in what form.

    inputs of a batch ──samples──► images, rows or tokens ◄── guesses of an attack

A task owns its truth. Attacks, metrics and reports ask the kind; none of them looks at
the task itself.
"""

from lightsplit.truths.base import Truth
from lightsplit.truths.image import ImageTruth
from lightsplit.truths.table import Column, TableTruth
from lightsplit.truths.text import NOTHING, TextTruth

KINDS = (ImageTruth.kind, TableTruth.kind, TextTruth.kind)

__all__ = [
    "KINDS",
    "NOTHING",
    "Column",
    "ImageTruth",
    "TableTruth",
    "TextTruth",
    "Truth",
]
