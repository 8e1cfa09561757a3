"""A task: are the stripes of an image upright?"""

import torch
from torch.utils.data import TensorDataset
from torchmetrics.classification import BinaryF1Score, MulticlassAccuracy

from lightsplit import Task
from lightsplit.models import CUTS, MODELS


class F1OfTwo(BinaryF1Score):
    """F1 of two logits."""

    def update(self, output, labels):
        """Count a batch."""
        super().update(output.argmax(1), labels)


def stripes(
    *, model: str = "stripenet", cut: str | None = None, noise: float = 0.1
) -> Task:
    """Return the task with a model for 1x8x8 images.

    Args:
        model: of the zoo.
        cut: of the model.
        noise: that hides the stripes.
    """
    MODELS.get(model)
    place = CUTS[model].resolve(cut)
    plan = MODELS.create(model, cut=place, classes=2)
    return Task(
        model=lambda: MODELS.create(model, cut=place, classes=2).module,
        example=lambda: (torch.zeros(2, 1, 8, 8), torch.zeros(2, dtype=torch.long)),
        data=lambda _folder: (_images(96, noise, 1), _images(32, noise, 2)),
        metrics={"accuracy": MulticlassAccuracy(2), "f1": F1OfTwo()},
        monitor="f1",
        head_until=plan.head_until,
        tail_from=plan.tail_from,
        model_name=model,
        cut=place,
        classes=2,
        sizes=(96, 32),
    )


def _images(count: int, noise: float, seed: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(2, (count,), generator=generator)
    lines = torch.tensor([0.0, 1.0] * 4).expand(1, 8, 8)
    images = torch.stack([lines if label else lines.mT for label in labels])
    blur = torch.rand(images.shape, generator=generator)
    return TensorDataset(images * (1 - noise) + noise * blur, labels)
