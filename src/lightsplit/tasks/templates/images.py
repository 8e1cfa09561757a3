"""Classify images.

Expected in an owner's folder, one subfolder per class:

    train/negative/*.png    train/positive/*.png
    test/negative/*.png     test/positive/*.png

Without train and test, the class folders lie in the folder itself, and a fifth of the
images is held out for testing. All owners and the server need this same file; only the
owners need images.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset
from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC

from lightsplit import Task
from lightsplit.data import ImageForm, hold_out

# Change these to describe your images. All owners must agree on them.
CLASSES = ("negative", "positive")
SIZE = (28, 28)  # height and width; other images are resized
CHANNELS = 1  # 1 for grey, 3 for colour

FORM = ImageForm(classes=CLASSES, size=SIZE, channels=CHANNELS)


class Network(nn.Module):
    """A small convolutional network; replace it by your own."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Sequential(
            nn.Conv2d(CHANNELS, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.body = nn.Sequential(
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.tail = nn.Linear(256, len(CLASSES))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return a score for each class."""
        scores: torch.Tensor = self.tail(self.body(self.head(images)))
        return scores


def load(folder: Path | None) -> tuple[Dataset[Any], Dataset[Any]]:
    """Return a training and a test set; this runs at the owner only."""
    if folder is not None and (folder / "test").is_dir():
        return FORM.folder(folder / "train"), FORM.folder(folder / "test")
    return hold_out(FORM.folder(folder), share=0.2)


def task() -> Task:
    """Return the task; the head and the tail stay with the owner."""
    return Task(
        model=Network,
        head_until="head",  # the last module of the owner's first part
        tail_from="tail",  # the first module of the owner's last part
        example=lambda: (torch.zeros(2, CHANNELS, *SIZE), torch.zeros(2).long()),
        loss=nn.CrossEntropyLoss(),  # weight=torch.tensor([…]) for rare classes
        metrics={
            "accuracy": MulticlassAccuracy(len(CLASSES), average="micro"),
            "auroc": MulticlassAUROC(len(CLASSES)),
        },
        monitor="auroc",  # decides which evaluation is the best
        data=load,
        new_data=FORM.unlabelled,  # for 'predict': a folder of pictures, no classes
        classes=len(CLASSES),
        form=FORM,
    )
