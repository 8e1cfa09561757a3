"""Pneumonia on chest X-rays of children: PneumoniaMNIST, 28x28 grey images.

lightsplit train --task examples/pneumonia/task.py
lightsplit sweep examples/pneumonia/frontier.toml

Needs pneumoniamnist/pneumoniamnist.npz in LIGHTSPLIT_DATA, as the MedMNIST collection
publishes it. The network is the zoo's ``simplecnn``.
"""

from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset
from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC

from lightsplit import Task
from lightsplit.data import ArrayForm, data_folder
from lightsplit.models import MODELS

CLASSES = 2  # healthy, pneumonia
FORM = ArrayForm(shape=(1, 28, 28), classes=CLASSES)


def load(folder: Path | None) -> tuple[Dataset[Any], Dataset[Any]]:
    """Return the published training and test images."""
    archive = data_folder(folder) / "pneumoniamnist" / "pneumoniamnist.npz"
    return (
        FORM.file(archive, inputs="train_images", labels="train_labels"),
        FORM.file(archive, inputs="test_images", labels="test_labels"),
    )


def task() -> Task:
    """Return the task, cut behind the deeper head (l2)."""
    cut = MODELS.create("simplecnn", cut="l2", classes=CLASSES)
    return Task(
        name="pneumonia",
        model=lambda: MODELS.create("simplecnn", cut="l2", classes=CLASSES).module,
        head_until=cut.head_until,
        tail_from=cut.tail_from,
        example=lambda: (torch.zeros(2, *FORM.shape), torch.zeros(2).long()),
        metrics={
            "accuracy": MulticlassAccuracy(CLASSES, average="micro"),
            "auroc": MulticlassAUROC(CLASSES),
        },
        data=load,
        classes=CLASSES,
        sizes=(2428, 468),
        form=FORM,
    )
