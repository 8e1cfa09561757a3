"""``lightsplit list``: what there is to choose from."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.table import Table

from lightsplit.attacks import ATTACKS
from lightsplit.backdoors import DETECTORS, INSPECTORS, TRIGGERS
from lightsplit.cli import console
from lightsplit.codecs import CODECS, OUTPUT_CODECS, PROJECTIONS
from lightsplit.data import DATASETS
from lightsplit.errors import UnknownNameError
from lightsplit.formats import FORMATS, ROUNDINGS
from lightsplit.metrics import METRICS
from lightsplit.models import CUTS, MODELS
from lightsplit.registry import Registry, unknown_name
from lightsplit.sweeps import catalogue, read_sweep

KINDS: dict[str, Registry[Any]] = {
    "models": MODELS,
    "codecs": CODECS,
    "datasets": DATASETS,
    "projections": PROJECTIONS,
    "output-codecs": OUTPUT_CODECS,
    "formats": FORMATS,
    "roundings": ROUNDINGS,
    "attacks": ATTACKS,
    "metrics": METRICS,
    "triggers": TRIGGERS,
    "detectors": DETECTORS,
    "inspectors": INSPECTORS,
}
EXPERIMENTS = "experiments"
Entries = dict[str, dict[str, str]]  # facts by the names of parts
_LEAST_WIDTH = 30  # of the terminal, for each column after the second


def list_parts(
    kind: Annotated[
        str, typer.Argument(help=f"one of: {', '.join((*KINDS, EXPERIMENTS))}")
    ],
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Show the parts that can be named: models and their cuts, codecs, attacks."""
    with console.reported_errors():
        if kind not in (*KINDS, EXPERIMENTS):
            raise UnknownNameError(unknown_name("kind", kind, [*KINDS, EXPERIMENTS]))
        entries = _experiments() if kind == EXPERIMENTS else _parts(kind)
    if json:
        console.print_json(entries)
        return
    console.out.print(_table(kind, entries))


def _table(kind: str, entries: Entries) -> Table:
    """Return the entries in columns, or their facts as lines where that is narrow."""
    first, *others = next(iter(entries.values()))
    is_narrow = console.out.width < _LEAST_WIDTH * len(others)
    table = Table(title=kind, title_justify="left", show_lines=is_narrow)
    table.add_column("name", no_wrap=True)
    for column in [first, *([] if is_narrow else others)]:
        table.add_column(column)
    for name, facts in entries.items():
        table.add_row(name, *([_lines(facts)] if is_narrow else facts.values()))
    return table


def _lines(facts: dict[str, str]) -> str:
    (_, what), *others = facts.items()
    return "\n".join([what, *(f"{name}: {fact}" for name, fact in others)])


def describe(kind: str, name: str) -> dict[str, str]:
    """Return what is worth knowing about a part before it is chosen."""
    part = KINDS[kind].get(name)
    if kind == "metrics":
        return _metric_facts(part)
    facts = {"what it is": _first_line(part)}
    if kind == "models":
        cuts = CUTS[name]
        facts["cuts"] = ", ".join(
            f"{cut} (default)" if cut == cuts.default else cut for cut in cuts.names
        )
    if kind == "attacks":
        facts |= _attack_facts(part)
    return facts


def _parts(kind: str) -> Entries:
    return {name: describe(kind, name) for name in KINDS[kind].names()}


def _experiments() -> Entries:
    """Return what each sweep file is about, and its scales."""
    return {
        sweep.name: {"about": sweep.about, "scales": ", ".join(sweep.scales) or "one"}
        for sweep in (read_sweep(path) for path in catalogue().values())
    }


def _attack_facts(attack: Any) -> dict[str, str]:
    return {
        "kind": attack.kind,
        "forms": ", ".join(filter(None, attack.forms)) or "–",
        "who could do it": attack.threat_model,
        "cost": attack.cost,
    }


def _metric_facts(create: Callable[[], Any]) -> dict[str, str]:
    metric = create()
    return {
        "what it is": _first_line(metric.function),
        "more private": metric.more_private,
        "range": f"{metric.lowest:g} to {metric.highest:g} {metric.unit}".strip(),
    }


def _first_line(part: Callable[..., Any]) -> str:
    return (part.__doc__ or "").strip().split("\n")[0]
