"""Small tasks of a user's own: rows of a table, and texts by a tiny embedding."""

from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset
from torchmetrics.classification import MulticlassAccuracy

from lightsplit import Task
from lightsplit.data import TableForm, TextForm, hold_out

TABLE = TableForm(
    "label",
    ("no", "yes"),
    {"age": (50.0, 15.0), "weight": (70.0, 12.0), "pulse": (80.0, 10.0)},
    {"sex": ("f", "m")},
)
TEXTS = TextForm(("bad", "good"), lambda text: {"input_ids": numbers(text)}, 6)
TOKENS = 24


def numbers(text):
    return [int(word) for word in text.split()]


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(TABLE.width, 16)
        self.body = nn.Sequential(nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
        self.tail = nn.Linear(16, 2)

    def forward(self, rows):
        return self.tail(self.body(self.head(rows)))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Embedding(TOKENS, 8)
        self.body = nn.Linear(8, 8)
        self.tail = nn.Linear(8, 2)

    def forward(self, input_ids):
        return self.tail(torch.relu(self.body(self.head(input_ids))).mean(1))


def accuracy():
    return {"accuracy": MulticlassAccuracy(2, average="micro")}


def table():
    return Task(
        model=Rows,
        head_until="head",
        tail_from="tail",
        example=lambda: (torch.zeros(2, TABLE.width), torch.zeros(2).long()),
        metrics=accuracy(),
        data=lambda folder: hold_out(TABLE.file(Path(folder) / "data.csv")),
        classes=2,
        form=TABLE,
    )


def text():
    example = {"input_ids": torch.zeros(2, 6).long()}
    return Task(
        model=Words,
        head_until="head",
        tail_from="tail",
        example=lambda: (example, torch.zeros(2).long()),
        metrics=accuracy(),
        data=lambda folder: hold_out(TEXTS.file(Path(folder) / "data.csv")),
        classes=2,
        form=TEXTS,
    )


def regression():
    def data(_folder):
        rows = torch.randn(120, 3, generator=torch.Generator().manual_seed(0))
        return hold_out(TensorDataset(rows, rows.sum(1, keepdim=True)))

    return Task(
        model=lambda: nn.Sequential(nn.Linear(3, 8), nn.Linear(8, 8), nn.Linear(8, 1)),
        head_until="0",
        tail_from="2",
        example=lambda: (torch.zeros(2, 3), torch.zeros(2, 1)),
        loss=nn.MSELoss(),
        data=data,
    )
