"""How good the model is on a test set, measured over the same messages.

    test batches ─► client ─► [server] ─► output ─► torchmetrics, and the loss

With shared heads one client speaks for all, or each measures the same model on a test
set of its own. With private heads each client has a model of its own. A figure over
several clients is their mean (``mean_evaluation``).
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


class Report(NamedTuple):
    """What one client has measured.

    Attributes:
        figures: the loss and every metric, by name.
        samples: of its test set; 0 if it does not say.
        name: of the client; empty in one process.
    """

    figures: Figures
    samples: int = 0
    name: str = ""


class Evaluation(NamedTuple):
    """The loss and every metric.

    Attributes:
        figures: means over the clients that reported, by name.
        clients: the figures of each of these clients.
        names: of these clients, in the same order; empty in one process.
        weighted_by: ``samples`` of the clients' test sets, or ``owners``: all alike.
    """

    figures: Figures
    clients: tuple[Figures, ...]
    names: tuple[str, ...] = ()
    weighted_by: str = "owners"


def evaluate(
    clients: Sequence[Client],
    batches: LabelledBatches,
    scoring: Scoring = BY_ACCURACY,
) -> Evaluation:
    """Let each client predict every batch, and measure its predictions."""
    return mean_evaluation([measure(one, batches, scoring) for one in clients])


def measure(client: Client, batches: LabelledBatches, scoring: Scoring) -> Report:
    """Let one client predict every batch, and measure its predictions."""
    scorer = Scorer(scoring, client)
    for inputs, labels in batches:
        scorer.add(client.predict_test(inputs, scorer.samples), labels)
    return Report(scorer.figures(), scorer.samples)


def mean_evaluation(reports: Sequence[Report]) -> Evaluation:
    """Return the figures of several clients and their means.

    A client weighs as much as its test set has samples. If one does not say how many,
    and where all have equally many, all weigh alike. A mean of areas under curves, or
    of other figures that are no mean over samples, is not the figure of all samples
    together, which nobody has.
    """
    sizes = [report.samples for report in reports]
    is_weighted = all(sizes) and len(set(sizes)) > 1
    weights = sizes if is_weighted else [1] * len(sizes)
    means = {
        name: sum(
            w * one.figures[name] for w, one in zip(weights, reports, strict=True)
        )
        / sum(weights)
        for name in reports[0].figures
    }
    return Evaluation(
        means,
        tuple(report.figures for report in reports),
        tuple(report.name for report in reports if report.name),
        "samples" if all(sizes) else "owners",
    )


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
