"""Find the class of every pixel.

Expected in an owner's folder, masks with the same names as their images:

    image/00.png    label/00.png
    image/01.png    label/01.png

A fifth of the images is held out for testing. A folder of images alone is for
'lightsplit predict'. All owners and the server need this same file; only the owners
need images.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset
from torchmetrics.classification import MulticlassF1Score, MulticlassJaccardIndex

from lightsplit import Task
from lightsplit.data import MaskForm, hold_out

# Change these to describe your images. All owners must agree on them.
SIZE = (128, 128)  # height and width; other images and masks are resized
CHANNELS = 1  # 1 for grey, 3 for colour
VALUES = (0, 255)  # the grey value of each class in a mask

FORM = MaskForm(size=SIZE, values=VALUES, channels=CHANNELS)


def layers(before: int, after: int) -> nn.Sequential:
    """Return two convolutions that keep height and width."""
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(after, after, 3, padding=1),
        nn.ReLU(),
    )


class Last(nn.Module):
    """The last part: what the server returned, beside what the owner kept."""

    def __init__(self) -> None:
        super().__init__()
        self.larger = nn.Upsample(scale_factor=2)
        self.layers = layers(16 + 8, 8)
        self.scores = nn.Conv2d(8, len(VALUES), 1)

    def forward(self, found: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        """Return a score for each class and pixel."""
        both = torch.cat((self.larger(found), kept), 1)
        scores: torch.Tensor = self.scores(self.layers(both))
        return scores


class Network(nn.Module):
    """A small U-Net, whose fine detail stays with the owner; replace it by your own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = layers(CHANNELS, 8)
        self.head = nn.MaxPool2d(2)
        self.body = nn.Sequential(
            layers(8, 16),
            nn.MaxPool2d(2),
            layers(16, 32),
            nn.Upsample(scale_factor=2),
            layers(32, 16),
        )
        self.tail = Last()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return a score for each class and pixel."""
        kept = self.first(images)  # goes from the head to the tail, not to the server
        scores: torch.Tensor = self.tail(self.body(self.head(kept)), kept)
        return scores


def loss(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return cross-entropy plus one minus the soft Dice score."""
    chances = scores.softmax(1)
    truth = nn.functional.one_hot(labels, len(VALUES)).movedim(-1, 1).float()
    both = (chances * truth).sum((0, 2, 3))
    each = (chances + truth).sum((0, 2, 3))
    dice = ((2 * both + 1) / (each + 1)).mean()
    return nn.functional.cross_entropy(scores, labels) + 1 - dice


def load(folder: Path | None) -> tuple[Dataset[Any], Dataset[Any]]:
    """Return a training and a test set; this runs at the owner only."""
    return hold_out(FORM.folder(folder), share=0.2)


def load_new(folder: Path) -> Dataset[Any] | None:
    """Return new images for 'predict', or None: then those held out are taken."""
    return None if (folder / "image").is_dir() else FORM.unlabelled(folder)


def task() -> Task:
    """Return the task; the head and the tail stay with the owner."""
    return Task(
        model=Network,
        head_until="head",  # the last module of the owner's first part
        tail_from="tail",  # the first module of the owner's last part
        example=lambda: (torch.zeros(2, CHANNELS, *SIZE), torch.zeros(2, *SIZE).long()),
        loss=loss,
        metrics={
            "dice": MulticlassF1Score(len(VALUES)),  # over pixels, it is the Dice score
            "iou": MulticlassJaccardIndex(len(VALUES)),
        },
        monitor="dice",  # decides which evaluation is the best
        data=load,
        new_data=load_new,
        form=FORM,
    )
