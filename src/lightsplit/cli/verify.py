"""``lightsplit verify``: is split the same as unsplit, for this very model?"""

import copy
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import typer
from rich.table import Table
from torch import nn

from lightsplit import seeding
from lightsplit.cli import console
from lightsplit.errors import ConfigError, LightSplitError
from lightsplit.models import MODELS
from lightsplit.runtime import OptimizerFactory
from lightsplit.splitting import SplitModel, split
from lightsplit.training import verify as verify_split
from lightsplit.training.verification import TOLERANCE

OPTIMIZERS: dict[str, OptimizerFactory] = {
    "sgd": partial(torch.optim.SGD, lr=0.05, momentum=0.9),
    "adam": partial(torch.optim.Adam, lr=1e-3),
}


class _Subject(NamedTuple):
    module: nn.Module
    input_shape: tuple[int, ...]
    head_until: str
    tail_from: str | None


def verify(  # noqa: PLR0913
    *,
    model: Annotated[
        str,
        typer.Option(
            help="a model of the zoo, or module:function of yours that returns the "
            "nn.Module (or a SplitModel made by hand)"
        ),
    ] = "tinycnn",
    cut: Annotated[str, typer.Option(help="cut of a zoo model; default: its own")] = "",
    head_until: Annotated[
        str, typer.Option(help="your model: last module of the head, e.g. layer1.0")
    ] = "",
    tail_from: Annotated[
        str, typer.Option(help="your model: first module of the tail, e.g. fc")
    ] = "",
    input_shape: Annotated[
        str, typer.Option(help="your model: shape of one input, e.g. 3,32,32")
    ] = "",
    steps: Annotated[int, typer.Option(min=1, help="training steps")] = 20,
    batch_size: Annotated[int, typer.Option(min=2)] = 16,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Train a model whole and split on the same batches, and compare every weight.

    Both topologies and two optimizers are tried. Exit code 0: the same up to rounding.

    [bold]Examples[/]

      lightsplit verify --model resnet18 --cut l1 --steps 5

      lightsplit verify --model mymodels:net --head-until layer1 --tail-from fc
      --input-shape 3,32,32
    """
    with console.reported_errors():
        if ":" in model:
            subject = _own(model, head_until, tail_from, input_shape, seed)
        elif head_until or tail_from or input_shape:
            raise ConfigError(
                "--head-until, --tail-from and --input-shape are for module:function, "
                f"got {model!r}"
            )
        else:
            subject = _from_zoo(model, cut, seed)
        batches = _batches(subject, steps, batch_size, seed)
        results = {
            f"{topology}, {name}": _compare(subject, batches, topology, name, seed)
            for topology in (("u", "vanilla") if subject.tail_from else ("vanilla",))
            for name in OPTIMIZERS
        }
    is_same = all(result["is_same"] for result in results.values())
    if json:
        console.print_json({"is_same": is_same, "runs": results})
    else:
        _show(results, is_same)
    raise SystemExit(0 if is_same else console.ERROR_EXIT)


def _from_zoo(name: str, cut: str, seed: int) -> _Subject:
    with seeding.scope(seed, "model"):
        zoo = MODELS.create(name, cut=cut)
    return _Subject(zoo.module, zoo.input_shape, zoo.head_until, zoo.tail_from)


def _own(
    place: str, head_until: str, tail_from: str, input_shape: str, seed: int
) -> _Subject:
    function = _load(place)
    with seeding.scope(seed, "model"), _blamed(f"{place} failed"):
        model = function()
    if isinstance(model, SplitModel):
        tail = "tail" if model.tail is not None else None
        subject = _Subject(model.whole, _shape(input_shape), "head", tail)
    elif not isinstance(model, nn.Module):
        raise ConfigError(
            f"{place} must return an nn.Module, got {type(model).__name__}"
        )
    elif not (head_until and tail_from):
        raise ConfigError(
            "a model of your own needs --head-until, --tail-from and --input-shape"
        )
    else:
        subject = _Subject(model, _shape(input_shape), head_until, tail_from)
    # A cut that cannot be is refused before anything is trained.
    split(
        copy.deepcopy(subject.module),
        head_until=subject.head_until,
        tail_from=subject.tail_from,
    )
    return subject


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise ConfigError(
            f"--input-shape must be numbers such as 3,32,32, got {text!r}"
        ) from error


@contextmanager
def _blamed(what: str) -> Iterator[None]:
    """Turn whatever the user's code raises into one line that starts with ``what``."""
    try:
        yield
    except LightSplitError:
        raise
    except Exception as error:  # a stranger's code may raise anything
        reason = (str(error).splitlines() or [""])[0]
        raise ConfigError(f"{what}: {type(error).__name__}: {reason}") from error


def _load(place: str) -> Callable[[], Any]:
    module_name, _, function_name = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        with _blamed(f"cannot load {place!r}"):
            found: Callable[[], Any] = getattr(
                importlib.import_module(module_name), function_name
            )
    finally:
        sys.path.remove(str(Path.cwd()))
    if not callable(found):
        raise ConfigError(f"{place!r} is not a function")
    return found


def _batches(
    subject: _Subject, steps: int, batch_size: int, seed: int
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(seeding.derive(seed, "verify"))
    shape = (batch_size, *subject.input_shape)
    with (
        _blamed(f"the model refuses inputs of shape {shape}"),
        torch.no_grad(),
        seeding.scope(seed, "probe"),
    ):
        subject.module.eval()
        logits = subject.module(torch.rand(shape, generator=generator))
    if not isinstance(logits, torch.Tensor) or logits.ndim != 2:
        raise ConfigError("the model must return logits of shape (batch, classes)")
    classes = logits.shape[1]
    return [
        (
            torch.rand(shape, generator=generator),
            torch.randint(classes, (batch_size,), generator=generator),
        )
        for _ in range(steps)
    ]


def _compare(
    subject: _Subject,
    batches: list[tuple[torch.Tensor, torch.Tensor]],
    topology: str,
    optimizer: str,
    seed: int,
) -> dict[str, Any]:
    with _blamed("the model cannot be trained"):
        result = verify_split(
            subject.module,
            batches,
            optimizer=OPTIMIZERS[optimizer],
            head_until=subject.head_until,
            tail_from=subject.tail_from if topology == "u" else None,
            seed=seed,
        )
    return {
        "is_same": result.is_same,
        "largest_difference": result.largest_difference,
        "where": result.where,
        "change": result.change,
        "steps": result.steps,
    }


def _show(results: dict[str, dict[str, Any]], is_same: bool) -> None:
    table = Table("run", "largest difference", "training moved weights by", "verdict")
    for name, result in results.items():
        verdict = "[green]same[/]" if result["is_same"] else "[red]different[/]"
        table.add_row(
            name,
            f"{result['largest_difference']:.1e} ({result['where']})",
            f"{result['change']:.2g}",
            verdict,
        )
    console.out.print(table)
    word = "equals" if is_same else "[red]does not equal[/]"
    console.out.print(f"split {word} unsplit, up to rounding ({TOLERANCE:g})")
