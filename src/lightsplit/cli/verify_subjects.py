"""The model that ``lightsplit verify`` is to try: of the zoo, a user's, or a task's."""

import copy
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lightsplit import seeding
from lightsplit.errors import ConfigError
from lightsplit.models import MODELS
from lightsplit.nesting import map_tensors, repeated
from lightsplit.splitting import SplitModel, call, split
from lightsplit.tasks import Loss, make_task
from lightsplit.user_code import one_line_errors

Batch = tuple[Any, Any]
Draw = Callable[[torch.Generator], Batch]


class Trials(NamedTuple):
    """How many batches of which size to train on, and the seed of all that is drawn."""

    steps: int
    batch_size: int
    seed: int


class Subject(NamedTuple):
    """A model, where to cut it, and what to train it on."""

    module: nn.Module
    head_until: str
    tail_from: str | None
    batches: list[Batch]
    loss: Loss = cross_entropy
    share: tuple[str, ...] = ()

    def returns_tensor(self) -> bool:
        """Return whether the model's output is one tensor."""
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            output = call(copy.deepcopy(self.module).eval(), self.batches[0][0])
        return isinstance(output, Tensor)


def from_zoo(name: str, cut: str | None, trials: Trials) -> Subject:
    """Return a model of the zoo, cut at one of its named cuts."""
    with seeding.scope(trials.seed, "model"):
        zoo = MODELS.create(name, cut=cut)
    batches = _image_batches(zoo.module, zoo.input_shape, trials)
    return Subject(zoo.module, zoo.head_until, zoo.tail_from, batches)


def from_task(name: str, head_until: str, tail_from: str, trials: Trials) -> Subject:
    """Return the model of a task, with its loss and batches like its example."""
    task = make_task(name, {})
    until, since = head_until or task.head_until, tail_from or task.tail_from
    if until is None or since is None:
        raise ConfigError(
            f"{task.name} does not say where to cut: give --head-until and --tail-from"
        )
    with seeding.scope(trials.seed, "model"):
        module = task.model()
    example = repeated(task.example(), trials.batch_size)
    _check_cut(module, until, since, example[0], task.share)

    def draw(generator: torch.Generator) -> Batch:
        inputs, labels = map_tensors(lambda one: _drawn(one, generator), example)
        return inputs, labels

    batches = _draw(draw, trials)
    return Subject(module, until, since, batches, task.loss, task.share)


def from_function(
    place: str, head_until: str, tail_from: str, input_shape: str, trials: Trials
) -> Subject:
    """Return the classifier that module:function makes."""
    function = _load(place)
    with seeding.scope(trials.seed, "model"), one_line_errors(f"{place} failed"):
        model = function()
    until, since = head_until, tail_from or None
    if isinstance(model, SplitModel):
        until, since = "head", "tail" if model.tail is not None else None
        model = model.whole
    elif not isinstance(model, nn.Module):
        raise ConfigError(
            f"{place} must return an nn.Module, got {type(model).__name__}"
        )
    elif not (head_until and tail_from):
        raise ConfigError(
            "a model of your own needs --head-until, --tail-from and --input-shape"
        )
    shape = _shape(input_shape)
    batches = _image_batches(model, shape, trials)
    _check_cut(model, until, since, batches[0][0])
    return Subject(model, until, since, batches)


def _check_cut(
    model: nn.Module,
    head_until: str,
    tail_from: str | None,
    example: Any,
    share: tuple[str, ...] = (),
) -> None:
    """Refuse a cut that cannot be, before anything is trained."""
    split(
        copy.deepcopy(model),
        head_until=head_until,
        tail_from=tail_from,
        example=example,
        share=share,
    )


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise ConfigError(
            f"--input-shape must be integers such as 3,32,32, got {text!r}"
        ) from error


def _load(place: str) -> Callable[[], Any]:
    module_name, _, function_name = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        with one_line_errors(f"cannot load {place!r}"):
            found: Callable[[], Any] = getattr(
                importlib.import_module(module_name), function_name
            )
    finally:
        sys.path.remove(str(Path.cwd()))
    if not callable(found):
        raise ConfigError(f"{place!r} is not a function")
    return found


def _image_batches(
    module: nn.Module, input_shape: tuple[int, ...], trials: Trials
) -> list[Batch]:
    """Return random inputs with random classes; the model says how many there are."""
    shape = (trials.batch_size, *input_shape)
    with (
        one_line_errors(f"the model refuses inputs of shape {shape}"),
        torch.no_grad(),
        seeding.scope(trials.seed, "probe"),
    ):
        logits = module.eval()(torch.rand(shape))
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        raise ConfigError("the model must return logits of shape (batch, classes)")
    classes = logits.shape[1]

    def draw(generator: torch.Generator) -> Batch:
        labels = torch.randint(classes, (trials.batch_size,), generator=generator)
        return torch.rand(shape, generator=generator), labels

    return _draw(draw, trials)


def _draw(draw: Draw, trials: Trials) -> list[Batch]:
    generator = torch.Generator().manual_seed(seeding.derive(trials.seed, "verify"))
    return [draw(generator) for _ in range(trials.steps)]


def _drawn(example: Tensor, generator: torch.Generator) -> Tensor:
    """Return random numbers like the example; whole numbers keep their values."""
    if not example.is_floating_point():
        return example
    return torch.rand(example.shape, generator=generator).to(example)
