"""``lightsplit list``: what there is to choose from."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.table import Table

from lightsplit.cli import console
from lightsplit.codecs import CODECS, OUTPUT_CODECS, PROJECTIONS
from lightsplit.data import DATASETS
from lightsplit.errors import UnknownNameError
from lightsplit.formats import FORMATS, ROUNDINGS
from lightsplit.models import MODELS
from lightsplit.registry import Registry, unknown_name

KINDS: dict[str, Registry[Any]] = {
    "models": MODELS,
    "codecs": CODECS,
    "datasets": DATASETS,
    "projections": PROJECTIONS,
    "output-codecs": OUTPUT_CODECS,
    "formats": FORMATS,
    "roundings": ROUNDINGS,
}


def list_parts(
    kind: Annotated[str, typer.Argument(help=f"one of: {', '.join(KINDS)}")],
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Show the models, codecs, datasets, formats … that can be named."""
    with console.reported_errors():
        if kind not in KINDS:
            raise UnknownNameError(unknown_name("kind", kind, list(KINDS)))
    registry = KINDS[kind]
    entries = {name: _first_line(registry.get(name)) for name in registry.names()}
    if json:
        console.print_json(entries)
        return
    table = Table("name", "what it is", title=kind, title_justify="left")
    for name, text in entries.items():
        table.add_row(name, text)
    console.out.print(table)


def _first_line(part: Callable[..., Any]) -> str:
    return (part.__doc__ or "").strip().split("\n")[0]
