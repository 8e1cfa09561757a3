"""``lightsplit list``: what there is to choose from."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.table import Table

from lightsplit.cli import console
from lightsplit.codecs import CODECS, PROJECTIONS
from lightsplit.data import DATASETS
from lightsplit.errors import UnknownNameError
from lightsplit.models import MODELS
from lightsplit.registry import Registry, unknown_name
from lightsplit.sweeps import catalogue, read_sweep

KINDS: dict[str, Registry[Any]] = {
    "models": MODELS,
    "codecs": CODECS,
    "datasets": DATASETS,
    "projections": PROJECTIONS,
}
EXPERIMENTS = "experiments"


def list_parts(
    kind: Annotated[
        str, typer.Argument(help=f"one of: {', '.join((*KINDS, EXPERIMENTS))}")
    ],
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Show the models, codecs, datasets … or experiments that can be named."""
    with console.reported_errors():
        if kind not in (*KINDS, EXPERIMENTS):
            raise UnknownNameError(unknown_name("kind", kind, [*KINDS, EXPERIMENTS]))
        entries = _experiments() if kind == EXPERIMENTS else _parts(KINDS[kind])
    if json:
        console.print_json(entries)
        return
    table = Table("name", "what it is", title=kind, title_justify="left")
    for name, text in entries.items():
        table.add_row(name, text)
    console.out.print(table)


def _parts(registry: Registry[Any]) -> dict[str, str]:
    return {name: _first_line(registry.get(name)) for name in registry.names()}


def _experiments() -> dict[str, str]:
    """Return what each sweep file is about, and its scales."""
    sweeps = [read_sweep(path) for path in catalogue().values()]
    return {
        sweep.name: f"{sweep.about} ({', '.join(sweep.scales) or 'one scale'})"
        for sweep in sweeps
    }


def _first_line(part: Callable[..., Any]) -> str:
    return (part.__doc__ or "").strip().split("\n")[0]
