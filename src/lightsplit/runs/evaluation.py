"""How good the model is on a test set, measured over the same messages.

    test batches ─► client ─► [server] ─► output ─► torchmetrics, and the loss

With shared heads one client speaks for all. With private heads each client has a model
of its own, and a figure is the mean of theirs on the whole test set.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.nesting import batch_size, to_device
from lightsplit.runtime import Client
from lightsplit.tasks import Task

if TYPE_CHECKING:
    from torchmetrics import Metric

EVALUATION_BATCH = 512  # the largest batch outside training
LOSS = "loss"
LabelledBatches = Iterable[tuple[Any, Any]]
Figures = dict[str, float]


class Monitor(NamedTuple):
    """The figure that decides which evaluation is the best."""

    name: str
    is_higher_better: bool

    def is_better(self, value: float, best: float | None) -> bool:
        """Return whether ``value`` beats the best one so far."""
        if best is None:
            return True
        return value > best if self.is_higher_better else value < best


@dataclass(frozen=True)
class Scoring:
    """The metrics of an evaluation, and the one that decides.

    Attributes:
        metrics: returns new metrics by name, given the first output.
        names: of the metrics, in the order in which clients report them.
        monitor: decides which evaluation is the best.
    """

    metrics: "Callable[[Any], Mapping[str, Metric]]"
    names: tuple[str, ...]
    monitor: Monitor

    @classmethod
    def of(cls, task: Task) -> "Scoring":
        """Return how a task is scored."""
        names = tuple(task.metrics)
        monitor = Monitor(task.monitored, task.direction == "max")
        return cls(lambda _output: task.make_metrics(), names, monitor)


def _accuracy(output: Any) -> "dict[str, Metric]":
    from torchmetrics.classification import MulticlassAccuracy

    if not isinstance(output, Tensor) or output.ndim < 2:
        raise ConfigError(
            "accuracy needs logits of shape (batch, classes); give metrics of your own"
        )
    return {"accuracy": MulticlassAccuracy(output.shape[1], average="micro")}


ACCURACY = Monitor("accuracy", is_higher_better=True)
BY_ACCURACY = Scoring(_accuracy, ("accuracy",), ACCURACY)


class Evaluation(NamedTuple):
    """The loss and every metric.

    Attributes:
        figures: means over the clients that were asked, by name.
        clients: the figures of each of these clients.
    """

    figures: Figures
    clients: tuple[Figures, ...]


def evaluate(
    clients: Sequence[Client],
    batches: LabelledBatches,
    scoring: Scoring = BY_ACCURACY,
) -> Evaluation:
    """Let each client predict every batch, and measure its predictions."""
    return mean_evaluation([_evaluate_one(one, batches, scoring) for one in clients])


def mean_evaluation(clients: Sequence[Figures]) -> Evaluation:
    """Return the figures of several clients and their means."""
    count = len(clients)
    means = {name: sum(one[name] for one in clients) / count for name in clients[0]}
    return Evaluation(means, tuple(clients))


def _evaluate_one(
    client: Client, batches: LabelledBatches, scoring: Scoring
) -> Figures:
    scorer = Scorer(scoring, client)
    for inputs, labels in batches:
        scorer.add(client.predict_test(inputs, scorer.samples), labels)
    return scorer.figures()


class Scorer:
    """Adds up the loss and the metrics of one client over batches.

    Attributes:
        samples: that were added.
    """

    def __init__(self, scoring: Scoring, client: Client) -> None:
        self._scoring = scoring
        self._client = client
        self._metrics: Mapping[str, Metric] = {}
        self._loss_sum, self.samples = 0.0, 0

    def add(self, output: Any, labels: Any) -> None:
        """Compare the outputs of a batch with its labels."""
        client, rows = self._client, batch_size(labels)
        targets = to_device(labels, client.device)
        if not self.samples:
            self._metrics = self._scoring.metrics(output)
        with torch.no_grad():
            self._loss_sum += client.loss(output, targets).item() * rows
            for metric in self._metrics.values():
                metric.to(client.device or "cpu").update(output, targets)
        self.samples += rows

    def figures(self) -> Figures:
        """Return the mean loss and every metric."""
        if not self.samples:
            raise ConfigError("the test set has no batches")
        found = {name: _number(name, one) for name, one in self._metrics.items()}
        return {LOSS: self._loss_sum / self.samples, **found}


def _number(name: str, metric: "Metric") -> float:
    value = metric.compute()
    if not isinstance(value, Tensor) or value.numel() != 1:
        came = getattr(value, "shape", type(value).__name__)
        raise ConfigError(f"the metric {name!r} must come to one number, got {came}")
    return float(value)
