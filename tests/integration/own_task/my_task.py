"""Tasks of a user: one of nested inputs and a regression, two of classes."""

import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset
from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC
from torchmetrics.regression import MeanSquaredError, R2Score

from lightsplit import Task


class House(nn.Module):
    """Prices from a place and measures; both come in one dictionary."""

    def __init__(self, width=8):
        super().__init__()
        self.place = nn.Embedding(5, width)
        self.measures = nn.Linear(3, width)
        self.join = Join()
        self.body = nn.Sequential(nn.Linear(2 * width, 16), nn.ReLU(), nn.Dropout(0.1))
        self.price = nn.Linear(16, 1)

    def forward(self, house):
        both = self.join(self.place(house["place"]), self.measures(house["measures"]))
        return self.price(self.body(both))


class Join(nn.Module):
    """Puts two vectors into one."""

    def forward(self, first, second):
        return torch.cat([first, second], 1).relu()


class Houses(Dataset):
    """Made-up houses."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.places = torch.randint(5, (count,), generator=generator)
        self.measures = torch.rand(count, 3, generator=generator)
        self.prices = self.measures.sum(1, keepdim=True) + self.places[:, None] / 5

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        inputs = {"place": self.places[index], "measures": self.measures[index]}
        return inputs, self.prices[index]


def task(width: int = 8, monitor: str = "r2") -> Task:
    """Return the regression."""
    return Task(
        model=lambda: House(width),
        head_until="join",
        tail_from="price",
        example=lambda: (
            {"place": torch.zeros(2).long(), "measures": torch.zeros(2, 3)},
            torch.zeros(2, 1),
        ),
        loss=nn.MSELoss(),
        metrics={"mse": MeanSquaredError(), "r2": R2Score()},
        monitor=monitor,
        data=lambda _folder: (Houses(64, 1), Houses(24, 2)),
    )


def classes() -> Task:
    """Return the classification."""
    return Task(
        model=lambda: nn.Sequential(
            nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3)
        ),
        head_until="1",
        tail_from="4",
        example=lambda: (torch.zeros(2, 6), torch.zeros(2).long()),
        metrics={"accuracy": MulticlassAccuracy(3), "auroc": MulticlassAUROC(3)},
        monitor="auroc",
        data=lambda _folder: (_points(64, 1), _points(24, 2)),
        classes=3,
        sizes=(64, 24),
    )


def pair() -> Task:
    """Return a classification with two classes."""
    return Task(
        model=lambda: nn.Sequential(
            nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 2)
        ),
        head_until="1",
        tail_from="4",
        example=lambda: (torch.zeros(2, 6), torch.zeros(2).long()),
        metrics={"accuracy": MulticlassAccuracy(2)},
        monitor="accuracy",
        data=lambda _folder: (_points(144, 1, classes=2), _points(8, 2, classes=2)),
        classes=2,
        sizes=(144, 8),
    )


def _points(count, seed, classes=3):
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(count, 6, generator=generator)
    return TensorDataset(points, points[:, :classes].argmax(1))
