"""How good the model is on the test set, measured over the same messages."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lightsplit.runtime import Client

EVALUATION_BATCH = 512  # the largest batch outside training
LabelledBatches = Iterable[tuple[Tensor, Tensor]]


class Evaluation(NamedTuple):
    """Accuracy and mean loss, averaged over the clients that were asked."""

    accuracy: float
    loss: float
    accuracies: tuple[float, ...]


def evaluate(clients: Sequence[Client], batches: LabelledBatches) -> Evaluation:
    """Let each client classify every batch.

    With shared heads one client speaks for all; with private heads each has its own
    model, and the figure is the mean of theirs on the whole test set.
    """
    return mean_evaluation([_evaluate_one(client, batches) for client in clients])


def mean_evaluation(figures: Sequence[tuple[float, float]]) -> Evaluation:
    """Return the mean over clients of (accuracy, loss)."""
    accuracies, losses = zip(*figures, strict=True)
    count = len(figures)
    return Evaluation(sum(accuracies) / count, sum(losses) / count, tuple(accuracies))


def _evaluate_one(client: Client, batches: LabelledBatches) -> tuple[float, float]:
    correct, loss_sum, samples = 0, 0.0, 0
    for inputs, labels in batches:
        logits = client.predict(inputs)
        targets = labels.to(logits.device)
        with torch.no_grad():
            loss_sum += client.loss(logits, targets).item() * len(labels)
        correct += int((logits.argmax(1) == targets).sum())
        samples += len(labels)
    return correct / samples, loss_sum / samples
