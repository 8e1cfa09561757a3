"""``lightsplit verify``: is split the same as unsplit, for this very model?"""

from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, NamedTuple

import torch
import typer
from rich.table import Table

from lightsplit.cli import console
from lightsplit.cli.verify_subjects import (
    Subject,
    Trials,
    from_function,
    from_task,
    from_zoo,
)
from lightsplit.errors import ConfigError, SplitError
from lightsplit.runtime import OptimizerFactory
from lightsplit.simulation import verify as verify_split
from lightsplit.simulation.verification import TOLERANCE
from lightsplit.user_code import one_line_errors

DEFAULT_MODEL = "tinycnn"
OPTIMIZERS: dict[str, OptimizerFactory] = {
    "sgd": partial(torch.optim.SGD, lr=0.05, momentum=0.9),
    "adam": partial(torch.optim.Adam, lr=1e-3),
}


class _Places(NamedTuple):
    """Where to cut a model of one's own, and what goes in."""

    head_until: str
    tail_from: str
    input_shape: str


def verify(  # noqa: PLR0913
    *,
    task: Annotated[
        str | None,
        typer.Option(
            help="a task: my_task.py[:function], package.module:function, or the name "
            "of one; its own loss and batches like its example are used"
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="instead of a task: a model of the zoo, or module:function of yours "
            "that returns a classifier as nn.Module (or as SplitModel made by hand); "
            "default: tinycnn"
        ),
    ] = None,
    cut: Annotated[
        str | None, typer.Option(help="cut of a zoo model; default: its own")
    ] = None,
    head_until: Annotated[
        str | None,
        typer.Option(help="your model: last module of the head, e.g. layer1.0"),
    ] = None,
    tail_from: Annotated[
        str | None, typer.Option(help="your model: first module of the tail, e.g. fc")
    ] = None,
    input_shape: Annotated[
        str | None, typer.Option(help="your model: shape of one input, e.g. 3,32,32")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="training steps")] = 20,
    batch_size: Annotated[int, typer.Option(min=2)] = 16,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Train a model whole and split on the same batches, and compare the results.

    The outputs of every step, every gradient, weight, buffer and state of the optimizer
    are compared, in training mode with dropout. Both topologies, where the model allows
    them, and two optimizers are tried. Exit code 0: the same up to rounding.

    [bold]Examples[/]

      lightsplit verify --task my_task.py

      lightsplit verify --model resnet18 --cut l1 --steps 5

      lightsplit verify --model mymodels:net --head-until layer1 --tail-from fc
      --input-shape 3,32,32
    """
    with console.reported_errors():
        places = _Places(head_until or "", tail_from or "", input_shape or "")
        trials = Trials(steps, batch_size, seed)
        subject = _subject(task, model, cut, places, trials)
        results = {
            f"{topology}, {name}": _compare_if_possible(subject, topology, name, seed)
            for topology in (("u", "vanilla") if subject.tail_from else ("vanilla",))
            for name in OPTIMIZERS
        }
    is_same = all(result.get("is_same", True) for result in results.values())
    if json:
        console.print_json({"is_same": is_same, "runs": results})
    else:
        _show(results, is_same)
    raise SystemExit(0 if is_same else console.ERROR_EXIT)


def _subject(
    task: str | None,
    model: str | None,
    cut: str | None,
    places: _Places,
    trials: Trials,
) -> Subject:
    """Return the one model that the options name."""
    if task:
        if model or cut or places.input_shape:
            raise ConfigError(
                "--model, --cut and --input-shape are not for --task, which has a "
                f"model and an example of its own, got {task!r}"
            )
        return from_task(task, places.head_until, places.tail_from, trials)
    if model is not None and ":" in model:
        return from_function(model, *places, trials)
    if any(places):
        raise ConfigError(
            "--head-until, --tail-from and --input-shape are for module:function, "
            f"got {model or DEFAULT_MODEL!r}"
        )
    return from_zoo(model or DEFAULT_MODEL, cut, trials)


def _compare_if_possible(
    subject: Subject, topology: str, name: str, seed: int
) -> dict[str, Any]:
    """Return the comparison, or why the server cannot have this model's tail."""
    if topology == "u":
        return _compare(subject, topology, name, seed)
    try:
        if not subject.returns_tensor():
            raise SplitError("the model's output is more than one tensor")
        return _compare(subject, topology, name, seed)
    except SplitError as error:
        return {"impossible": f"needs the tail at the client: {error}"}


def _compare(subject: Subject, topology: str, name: str, seed: int) -> dict[str, Any]:
    with one_line_errors("the model cannot be trained"):
        result = verify_split(
            subject.module,
            subject.batches,
            optimizer=OPTIMIZERS[name],
            head_until=subject.head_until,
            tail_from=subject.tail_from if topology == "u" else None,
            loss=subject.loss,
            seed=seed,
            share=subject.share,
        )
    return {"is_same": result.is_same, **asdict(result)}


def _show(results: dict[str, dict[str, Any]], is_same: bool) -> None:
    kinds = ("outputs", "gradients", "weights and buffers", "optimizer")
    table = Table("run", *kinds, "training moved weights by", "verdict")
    for name, result in results.items():
        if "impossible" in result:
            table.add_row(name, *["–"] * len(kinds), "–", result["impossible"])
            continue
        verdict = f"[red]different[/] at {result['where']}"
        if result["is_same"]:
            is_exact = result["largest_difference"] == 0
            verdict = f"[green]same[/]{', every bit' if is_exact else ''}"
        differences = [f"{result['by_kind'][kind]:.2g}" for kind in kinds]
        table.add_row(name, *differences, f"{result['change']:.2g}", verdict)
    console.out.print(table)
    word = "equals" if is_same else "[red]does not equal[/]"
    is_exact = all(not each.get("largest_difference") for each in results.values())
    how = "bit for bit" if is_exact else f"up to rounding ({TOLERANCE:g})"
    console.out.print(f"split {word} unsplit, {how}")
