"""The digits as an owner's own files, with the model of the built-in task."""

from dataclasses import replace

import torch
from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC

from lightsplit import Task
from lightsplit.data import ArrayForm, ImageForm
from lightsplit.tasks import TASKS

CLASSES = tuple("0123456789")
IMAGES = ImageForm(CLASSES, (8, 8))
ARRAYS = ArrayForm((1, 8, 8), classes=10)


def from_folder(folder):
    return IMAGES.folder(folder / "train"), IMAGES.folder(folder / "test")


def from_list(folder):
    return IMAGES.listed(folder / "train.csv"), IMAGES.listed(folder / "test.csv")


def from_arrays(folder):
    return ARRAYS.file(folder / "train.npz"), ARRAYS.file(folder / "test.npz")


def made(data, form):
    built_in = TASKS.create("digits")
    return Task(
        model=built_in.model,
        head_until=built_in.head_until,
        tail_from=built_in.tail_from,
        example=lambda: (torch.zeros(2, 1, 8, 8), torch.zeros(2).long()),
        metrics=built_in.metrics,
        data=data,
        new_data=IMAGES.unlabelled,
        classes=10,
        form=form,
    )


def task():
    return made(from_folder, IMAGES)


def measured():
    whole = task()
    metrics = {"accuracy": MulticlassAccuracy(10, average="micro")}
    return replace(whole, metrics={**metrics, "auroc": MulticlassAUROC(10)})


def listed():
    return made(from_list, IMAGES)


def arrays():
    return made(from_arrays, ARRAYS)


def reordered():
    form = ImageForm(CLASSES[::-1], (8, 8))
    return made(from_folder, form)
