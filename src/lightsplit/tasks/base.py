"""A task: a model, an example batch, a loss, metrics and data.

    def task() -> Task:
        return Task(
            model=make_model, head_until="layer1", tail_from="fc",
            example=lambda: (torch.zeros(2, 1, 28, 28), torch.zeros(2).long()),
            loss=nn.CrossEntropyLoss(),
            metrics={"accuracy": MulticlassAccuracy(2), "auroc": MulticlassAUROC(2)},
            monitor="auroc",
            data=load_my_folder,
        )

The server needs everything but the data: it builds the model, and derives the shapes at
the cuts from the example. ``data`` runs only at the data owner.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lightsplit.data.augmentation import Augmentation
from lightsplit.data.forms import Form
from lightsplit.errors import ConfigError
from lightsplit.registry import Registry, unknown_name
from lightsplit.splitting import call
from lightsplit.truths import ImageTruth, TableTruth, TextTruth, Truth
from lightsplit.user_code import one_line_errors

if TYPE_CHECKING:
    from torchmetrics import Metric

Loss = Callable[[Any, Any], Tensor]
LOSS = "loss"


@dataclass(frozen=True)
class Task:
    """Everything that a command needs to know about the model to train and its data.

    Attributes:
        model: builds the whole model, with weights from torch's generator.
        example: returns one batch in the form of the data: inputs and labels of any
            nesting and any type. Its shapes matter, its numbers do not.
        data: returns a training and a test set, given the owner's folder.
        augment: random changes of training batches, such as ``RandomFlip()``.
        new_data: returns samples to predict, given a folder; a sample is its inputs,
            without a label. Where there is none, or it returns None, ``predict`` takes
            the test set of ``data``.
        loss: maps the model's output and the labels to a mean over the batch.
        metrics: torchmetrics objects by name, or functions that make them.
        monitor: the metric that decides which evaluation is the best, or "loss"; by
            default the first metric.
        head_until: the last module of the head.
        tail_from: the first module of the tail.
        share: names of inputs that the server gets as they are, such as a mask.
        name: name of the task, for labels.
        model_name: name of the model, which both ends must agree on.
        cut: name of the cut, if the model's cuts have names.
        classes: number of classes, if labels are classes.
        sizes: number of training and test samples, if known without the data.
        codec_options: options of codecs that suit this task, by the codec's name.
        form: what all owners agree on about their samples; its terms are in the
            contract.
        truth: what an audit tries to find out about a sample; by default the form says
            it, or the example: images, rows or tokens.
    """

    model: Callable[[], nn.Module]
    example: Callable[[], tuple[Any, Any]]
    data: Callable[[Path | None], Any] | None = None
    loss: Loss = cross_entropy
    metrics: "Mapping[str, Metric | Callable[[], Metric]]" = field(default_factory=dict)
    monitor: str | None = None
    head_until: str | None = None
    tail_from: str | None = None
    share: tuple[str, ...] = ()
    name: str = "task"
    model_name: str | None = None
    cut: str | None = None
    classes: int | None = None
    sizes: tuple[int, int] | None = None
    codec_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    form: Form | None = None
    new_data: Callable[[Path], Any] | None = None
    augment: tuple[Augmentation, ...] = ()
    truth: Truth | None = None

    def make_metrics(self) -> "dict[str, Metric]":
        """Return new, empty metrics."""
        return {name: _new(metric) for name, metric in self.metrics.items()}

    @property
    def monitored(self) -> str:
        """The metric that decides which evaluation is the best."""
        known = [*self.metrics, LOSS]
        if self.monitor is None:
            return known[0]
        if self.monitor not in known:
            raise ConfigError(unknown_name("metric to monitor", self.monitor, known))
        return self.monitor

    @property
    def direction(self) -> Literal["max", "min"]:
        """Whether a higher or a lower value of the monitored metric is better."""
        if self.monitored == LOSS:
            return "min"
        is_higher_better = _new(self.metrics[self.monitored]).higher_is_better
        if is_higher_better is None:
            raise ConfigError(
                f"the metric {self.monitored!r} does not say whether higher is better; "
                "monitor another one"
            )
        return "max" if is_higher_better else "min"

    def example_inputs(self) -> Any:
        """Return the inputs of the example batch."""
        return self.example()[0]

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an input; ConfigError if it is not an image.

        Attacks and triggers for images need it.
        """
        inputs = self.example_inputs()
        if not isinstance(inputs, Tensor) or inputs.ndim != 4:
            raise ConfigError(
                f"the inputs of {self.name} are not images of shape "
                "(batch, channels, height, width), which attacks and triggers are for"
            )
        channels, height, width = inputs.shape[1:]
        return channels, height, width

    def find_truth(self) -> Truth:
        """Return what an audit tries to find out; ConfigError if the task lacks it."""
        found = self.truth
        if found is None and self.form is not None:
            found = self.form.truth()
        if found is None:
            found = _truth_of(self.example_inputs())
        if found is None:
            raise ConfigError(
                f"the inputs of {self.name} are neither images, nor rows, nor tokens, "
                "so an audit does not know what to look for; give the task a truth"
            )
        return found

    @property
    def class_count(self) -> int:
        """The number of classes; ConfigError if labels are not classes."""
        if self.classes is None:
            raise ConfigError(f"{self.name} does not say how many classes it has")
        return self.classes

    def check(self) -> None:
        """Raise ConfigError unless the example fits the model and the loss."""
        for name in ("model", "example", "loss"):
            if not callable(getattr(self, name)):
                message = f"{name} of {self.name} must be a function or a class"
                raise ConfigError(message)
        inputs, labels = _checked_example(self)
        for name, metric in self.metrics.items():
            with one_line_errors(f"the metric {name!r} of {self.name} cannot be made"):
                _new(metric)
        with (
            one_line_errors(
                f"the example of {self.name} does not fit its model and loss"
            ),
            torch.random.fork_rng(devices=[]),
            torch.no_grad(),
        ):
            output = call(self.model().eval(), inputs)
            value = self.loss(output, labels)
        if not isinstance(value, Tensor) or value.numel() != 1:
            raise ConfigError(f"the loss of {self.name} must return one number")
        _ = self.direction


def _new(metric: Any) -> "Metric":
    is_made = isinstance(metric, nn.Module)  # every torchmetrics object is one
    made: Metric = metric.clone() if is_made else metric()
    return made


def _truth_of(inputs: Any) -> Truth | None:
    """Return the kind of truth that an example looks like."""
    if isinstance(inputs, Mapping):
        inputs = inputs.get("input_ids")
    if not isinstance(inputs, Tensor):
        return None
    match tuple(inputs.shape):
        case (_, channels, height, width) if inputs.is_floating_point():
            return ImageTruth((channels, height, width))
        case (_, width) if inputs.is_floating_point():
            return TableTruth.numbered(width)
        case (_, length) if not inputs.is_floating_point():
            return TextTruth(length)
    return None


TASKS: Registry[Task] = Registry("task", "lightsplit.tasks")


def _checked_example(task: Task) -> tuple[Any, Any]:
    with one_line_errors(f"the example of {task.name} cannot be made"):
        batch = task.example()
    if not isinstance(batch, tuple) or len(batch) != 2:
        raise ConfigError(
            f"example of {task.name} must return a pair (inputs, labels), "
            f"got {type(batch).__name__}"
        )
    return batch
