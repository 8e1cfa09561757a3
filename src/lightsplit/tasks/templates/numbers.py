"""Predict a column of numbers in a table.

Expected in an owner's folder: train.csv and test.csv (or .parquet), or data.csv alone,
of which a fifth is then held out for testing. Columns that are not named below are left
alone. new.csv, without labels, is for 'lightsplit predict'. All owners and the server
need this same file; only the owners need tables.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset
from torchmetrics.regression import MeanAbsoluteError, R2Score

from lightsplit import Task
from lightsplit.data import TableForm, hold_out

# Change these to describe your table. All owners must agree on them.
LABEL = "label"  # the column to predict
SCALE = (100.0, 20.0)  # its mean and deviation, so that errors have a handy size
NUMBERS = {"age": (50.0, 15.0), "income": (30.0, 10.0)}  # mean and deviation of each
CATEGORIES: dict[str, tuple[str, ...]] = {"sex": ("f", "m")}  # names of each
OPTIONAL: tuple[str, ...] = ()  # columns that may be empty
MISSING: tuple[str, ...] = ()  # what stands for an empty value, such as NA

FORM = TableForm(LABEL, (), NUMBERS, CATEGORIES, OPTIONAL, MISSING)


class Network(nn.Module):
    """Three layers; replace them by your own."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Sequential(nn.Linear(FORM.width, 32), nn.ReLU())
        self.body = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))
        self.tail = nn.Sequential(nn.ReLU(), nn.Linear(32, 1))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return a number for each row."""
        found: torch.Tensor = self.tail(self.body(self.head(rows))).squeeze(1)
        return SCALE[0] + SCALE[1] * found


def loss(found: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the mean square of the error, in deviations of the label."""
    return ((found - labels) / SCALE[1]).square().mean()


def load(folder: Path | None) -> tuple[Dataset[Any], Dataset[Any]]:
    """Return a training and a test set; this runs at the owner only."""
    place = folder or Path()
    for suffix in (".csv", ".parquet"):
        if (place / f"train{suffix}").is_file():
            train, test = place / f"train{suffix}", place / f"test{suffix}"
            return FORM.file(train), FORM.file(test)
    return hold_out(FORM.file(place / "data.csv"), share=0.2)


def load_new(folder: Path) -> torch.Tensor | None:
    """Return new rows for 'predict', without labels; None takes test.csv."""
    file = folder / "new.csv"
    return FORM.unlabelled(file) if file.is_file() else None


def task() -> Task:
    """Return the task; the head and the tail stay with the owner."""
    return Task(
        model=Network,
        head_until="head",  # the last module of the owner's first part
        tail_from="tail",  # the first module of the owner's last part
        example=lambda: (torch.zeros(2, FORM.width), torch.zeros(2)),
        loss=loss,
        metrics={"error": MeanAbsoluteError(), "r2": R2Score()},
        monitor="error",  # the evaluation with the least is the best
        data=load,
        new_data=load_new,
        form=FORM,
    )
