"""``lightsplit list``: the parts and sweeps that can be named in a command."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.table import Table

from lightsplit.attacks import ATTACKS, Attack, capabilities, find_attack
from lightsplit.backdoors import DETECTORS, INSPECTORS, TRIGGERS
from lightsplit.cli import console
from lightsplit.cli.other_methods import OTHER_METHODS
from lightsplit.codecs import CODECS, OUTPUT_CODECS, PROJECTIONS
from lightsplit.data import AUGMENTATIONS, DATASETS
from lightsplit.errors import UnknownNameError
from lightsplit.formats import FORMATS, ROUNDINGS
from lightsplit.metrics import METRICS
from lightsplit.models import CUTS, MODELS
from lightsplit.objectives import OBJECTIVES
from lightsplit.part_facts import PartFacts
from lightsplit.part_options import Value, known_options, write_part
from lightsplit.protections import LABEL_PROTECTIONS
from lightsplit.registry import Registry, unknown_name
from lightsplit.sweeps import catalogue, read_sweep
from lightsplit.tasks import TASKS, make_task

KINDS: dict[str, Registry[Any]] = {
    "tasks": TASKS,
    "models": MODELS,
    "codecs": CODECS,
    "datasets": DATASETS,
    "projections": PROJECTIONS,
    "output-codecs": OUTPUT_CODECS,
    "augmentations": AUGMENTATIONS,
    "objectives": OBJECTIVES,
    "label-protections": LABEL_PROTECTIONS,
    "formats": FORMATS,
    "roundings": ROUNDINGS,
    "attacks": ATTACKS,
    "metrics": METRICS,
    "triggers": TRIGGERS,
    "detectors": DETECTORS,
    "inspectors": INSPECTORS,
}
METHODS = "methods"
EXPERIMENTS = "experiments"
NAMES = (*KINDS, METHODS, EXPERIMENTS)
WITH_FACTS = ("codecs", "objectives", "label-protections")
Entries = dict[str, dict[str, str]]  # facts by the names of parts
_LEAST_WIDTH = 30  # characters of the terminal for each column after the second


def list_parts(
    kind: Annotated[str, typer.Argument(help=f"one of: {', '.join(NAMES)}")],
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """List the parts of one kind (models, codecs, attacks …) and their options."""
    with console.reported_errors():
        if kind not in NAMES:
            raise UnknownNameError(unknown_name("kind", kind, list(NAMES)))
        entries = _entries(kind)
    if json:
        console.print_json(entries)
        return
    console.out.print(_table(kind, entries))


def _table(kind: str, entries: Entries) -> Table:
    """Return the entries in columns, or one fact per line on a narrow terminal."""
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
    """Return the facts that help to choose a part."""
    part = KINDS[kind].get(name)
    if kind == "metrics":
        return _metric_facts(part)
    if kind == "tasks":
        return _task_facts(name)
    facts = {"what it is": _first_line(part)}
    if kind == "models":
        cuts = CUTS[name]
        facts["cuts"] = ", ".join(
            f"{cut} (default)" if cut == cuts.default else cut for cut in cuts.names
        )
    if kind in WITH_FACTS:
        facts |= getattr(part, "facts", PartFacts()).entries()
    if kind == "attacks":
        facts |= _attack_facts(find_attack(name))
    return facts


def _entries(kind: str) -> Entries:
    if kind == METHODS:
        return {
            name: {"what it is": method.what, **method.facts.entries()}
            for name, method in OTHER_METHODS.items()
        }
    if kind == EXPERIMENTS:
        return _experiments()
    return {name: describe(kind, name) for name in KINDS[kind].names()}


def _experiments() -> Entries:
    """Return the title and the scales of each built-in sweep."""
    return {
        sweep.name: {"about": sweep.about, "scales": ", ".join(sweep.scales) or "one"}
        for sweep in (read_sweep(path) for path in catalogue().values())
    }


def _task_facts(name: str) -> dict[str, str]:
    task = make_task(name, {})
    options = known_options(KINDS["tasks"].get(name)).values()
    sizes = task.sizes or ()
    return {
        "model": task.model_name or "–",
        "metrics": ", ".join(task.metrics) or "–",
        "training and test samples": " and ".join(f"{n:,}" for n in sizes) or "–",
        "options": ", ".join(_option_text(each.name, each.default) for each in options)
        or "–",
    }


def _attack_facts(attack: type[Attack]) -> dict[str, str]:
    options = known_options(attack, given=attack.given_arguments()).values()
    return {
        "kind": attack.kind,
        "abilities": ", ".join(capabilities(attack)),
        "forms": ", ".join(filter(None, attack.forms)) or "–",
        "options": ", ".join(_option_text(each.name, each.default) for each in options)
        or "–",
        "who could do it": attack.threat_model,
        "cost": attack.cost,
        "source": attack.facts.source,
        "assumes": attack.facts.assumes,
        "status": attack.facts.status,
    }


def _option_text(name: str, default: Value | None) -> str:
    """Return an option, with its default if that is a fixed value."""
    if default is None:
        return name
    return write_part("", {name: default}).removeprefix(":")


def _metric_facts(create: Callable[[], Any]) -> dict[str, str]:
    metric = create()
    return {
        "what it is": _first_line(metric.function),
        "more private": metric.more_private,
        "range": f"{metric.lowest:g} to {metric.highest:g} {metric.unit}".strip(),
    }


def _first_line(part: Callable[..., Any]) -> str:
    return (part.__doc__ or "").strip().split("\n")[0]
