"""Classify texts.

Expected in an owner's folder: train.csv and test.csv (or .tsv) with the columns text
and label. new.csv (or .tsv), without labels, is for 'lightsplit predict'. All owners
and the server need this same file; only the owners need texts.

The tokenizer below needs no download: every word becomes one of 4096 numbers. A Hugging
Face tokenizer works in its place, and a model from transformers in place of Network.
"""

import re
import zlib
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset
from torchmetrics.classification import MulticlassAccuracy

from lightsplit import Task
from lightsplit.data import TextForm

# Change these to describe your texts. All owners must agree on them.
CLASSES = ("negative", "positive")
TOKENS = 64  # longest text; longer ones are cut
WORDS = 4096  # numbers that a word can become; 0 is padding


def tokenize(text: str) -> dict[str, list[int]]:
    """Return a number for each word."""
    words = re.findall(r"\w+", text.lower()) or [""]
    return {"input_ids": [1 + zlib.crc32(one.encode()) % (WORDS - 1) for one in words]}


FORM = TextForm(CLASSES, tokenize, max_tokens=TOKENS, truncate=True)


class Words(nn.Module):
    """The mean of the words' vectors; padding does not count."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, 64, padding_idx=0)

    def forward(self, texts: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return one vector for each text."""
        numbers = texts["input_ids"]
        count = (numbers > 0).sum(1, keepdim=True).clamp(min=1)
        total: torch.Tensor = self.table(numbers).sum(1)
        return total / count


class Network(nn.Module):
    """A bag of words; replace it by your own."""

    def __init__(self) -> None:
        super().__init__()
        self.head = Words()
        self.body = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
        self.tail = nn.Sequential(nn.ReLU(), nn.Linear(64, len(CLASSES)))

    def forward(self, texts: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return a score for each class."""
        scores: torch.Tensor = self.tail(self.body(self.head(texts)))
        return scores


def load(folder: Path | None) -> tuple[Dataset[Any], Dataset[Any]]:
    """Return a training and a test set; this runs at the owner only."""
    place = folder or Path()
    suffix = ".tsv" if (place / "train.tsv").is_file() else ".csv"
    return FORM.file(place / f"train{suffix}"), FORM.file(place / f"test{suffix}")


def load_new(folder: Path) -> Dataset[Any] | None:
    """Return new texts for 'predict', without labels; None takes test.csv."""
    found = [
        file for file in (folder / "new.csv", folder / "new.tsv") if file.is_file()
    ]
    return FORM.unlabelled(found[0]) if found else None


def task() -> Task:
    """Return the task; the head and the tail stay with the owner."""
    example = {"input_ids": torch.zeros(2, TOKENS).long()}
    return Task(
        model=Network,
        head_until="head",  # the last module of the owner's first part
        tail_from="tail",  # the first module of the owner's last part
        example=lambda: (example, torch.zeros(2).long()),
        metrics={"accuracy": MulticlassAccuracy(len(CLASSES), average="micro")},
        data=load,
        new_data=load_new,
        classes=len(CLASSES),
        form=FORM,
    )
