"""The built-in tasks: published image datasets with models of the zoo.

``--dataset fashion-mnist --model simplecnn --cut l2`` is shorthand for one of these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lightsplit.data import DATASETS, Dataset, data_folder
from lightsplit.errors import ConfigError
from lightsplit.models import CUTS, MODELS, ZooModel
from lightsplit.tasks.base import TASKS, Task

if TYPE_CHECKING:
    from torchmetrics import Metric

EXAMPLES = 2  # samples in an example batch


@dataclass(frozen=True)
class ImageTask:
    """The facts of a dataset that are known without its files, and the paper's choices.

    Attributes:
        shape: channels, height and width of an image.
        classes: number of classes.
        sizes: published numbers of training and test images; a copy may have fewer.
        model: the default model of the zoo.
        codec_options: the paper's options, by the codec's name.
    """

    name: str
    shape: tuple[int, int, int]
    classes: int
    sizes: tuple[int, int]
    model: str
    codec_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def make(self, *, model: str | None = None, cut: str | None = None) -> Task:
        """Return the task with a model of the zoo, cut at one of its named cuts."""
        chosen = model or self.model
        MODELS.get(chosen)
        place = CUTS[chosen].resolve(cut)
        build = partial(MODELS.create, chosen, cut=place, classes=self.classes)
        with torch.device("meta"):  # shapes and names only, no weights
            plan = build()
        if plan.input_shape != self.shape:
            raise ConfigError(
                f"{chosen} takes images of shape {plan.input_shape}, but "
                f"{self.name} has {self.shape}"
            )
        return Task(
            name=self.name,
            model_name=chosen,
            cut=place,
            model=partial(_module, build),
            head_until=plan.head_until,
            tail_from=plan.tail_from,
            example=self._example,
            metrics={"accuracy": self._accuracy},
            data=self._load,
            classes=self.classes,
            sizes=self.sizes,
            codec_options=self.codec_options,
        )

    def _example(self) -> tuple[Tensor, Tensor]:
        labels = torch.zeros(EXAMPLES, dtype=torch.int64)
        return torch.zeros(EXAMPLES, *self.shape), labels

    def _accuracy(self) -> "Metric":
        from torchmetrics.classification import MulticlassAccuracy

        return MulticlassAccuracy(self.classes, average="micro")

    def _load(self, folder: Path | None) -> Dataset:
        return DATASETS.create(self.name, data_dir=data_folder(folder))


def _module(build: Callable[[], ZooModel]) -> nn.Module:
    return build().module


GREY, COLOUR = (1, 28, 28), (3, 32, 32)
IMAGE_TASKS = (
    ImageTask("digits", (1, 8, 8), 10, (1437, 360), "tinycnn"),
    ImageTask("mnist", GREY, 10, (60000, 10000), "simplecnn"),
    ImageTask("fashion-mnist", GREY, 10, (60000, 10000), "simplecnn"),
    ImageTask(
        "cifar10",
        COLOUR,
        10,
        (50000, 10000),
        "resnet18",
        {"lightsplit-l": {"hidden": 512}},
    ),
    ImageTask(
        "cifar100",
        COLOUR,
        100,
        (50000, 10000),
        "resnet18",
        {"lightsplit-l": {"hidden": 2048}},
    ),
    ImageTask("gtsrb", COLOUR, 43, (39209, 12630), "micronnet"),
)
for _task in IMAGE_TASKS:
    TASKS.register(_task.name)(_task.make)
