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
    columns = list(next(iter(entries.values())))
    table = Table(title=kind, title_justify="left")
    table.add_column("name", no_wrap=True)
    for column in columns:
        table.add_column(column)
    for name, facts in entries.items():
        table.add_row(name, *facts.values())
    console.out.print(table)


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


def _parts(kind: str) -> dict[str, dict[str, str]]:
    return {name: describe(kind, name) for name in KINDS[kind].names()}


def _experiments() -> dict[str, dict[str, str]]:
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
