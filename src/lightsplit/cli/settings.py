"""Every setting of an experiment as a command-line option, declared once.

``takes_experiment`` gives a command one option per field of the experiment's tables,
and one per option of any codec or detector. The command receives the options that the
user gave as one dictionary, under their short names.
"""

import functools
import inspect
import types
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from lightsplit.cli.console import reported_errors
from lightsplit.experiments import Experiment, make_experiment, read_experiment
from lightsplit.experiments.parts import options_of_all
from lightsplit.experiments.presets import without_wire
from lightsplit.experiments.settings import (
    FIELDS,
    detector_options,
    dotted_names,
    parse_change,
    parse_value,
    to_tables,
)
from lightsplit.results.settings import merge, short_name

Settings = dict[str, Any]
PANELS = {
    "task": "Task",
    "split": "Split",
    "wire": "Wire",
    "training": "Training",
    "owners": "Owners",
    "guard": "Backdoors",
    "backdoor": "Backdoors",
    "server": "Backdoors",
}


def takes_experiment(
    command: Callable[..., None], *, without: Collection[str] = ()
) -> Callable[..., None]:
    """Return ``command`` with an option per setting in place of ``settings``.

    Args:
        command: an option of its own replaces the setting of the same name.
        without: settings that the command has no option for.
    """
    own = list(inspect.signature(command).parameters.values())
    taken = {*without, *(parameter.name for parameter in own)}
    options = {option.name: option for option in _options() if option.name not in taken}

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        settings = {name: given.pop(name) for name in options}
        with reported_errors():
            present = _present(settings)
        command(settings=present, **given)

    kept = [parameter for parameter in own if parameter.name != "settings"]
    parameters = [*kept, *options.values()]
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper


def resolve(file: Path | None, settings: Settings) -> Experiment:
    """Return the experiment in ``file``, overridden by the options given."""
    base = read_experiment(file) if file is not None else {}
    changes = to_tables(settings)
    if "preset" in changes.get("wire", {}):
        base = without_wire(base)
    name = changes.get("codec", {}).get("name")
    if name not in (None, base.get("codec", {}).get("name")):
        base = {key: table for key, table in base.items() if key != "codec"}
    return make_experiment(merge(base, changes))


def _present(settings: Settings) -> Settings:
    """Return the settings that the user gave, with those of --set among them."""
    changes = dict(map(parse_change, settings.pop("set_", None) or []))
    given = {
        name: parse_value(value) if name in _texts() else value
        for name, value in settings.items()
        if value not in (None, [])
    }
    return {**given, **changes}


@functools.cache
def _texts() -> frozenset[str]:
    """Return the settings whose text may mean a number: unions and part options."""
    unions = {
        short_name(f"{table}.{name}")
        for table, model in FIELDS.items()
        for name, field in model.model_fields.items()
        if _kind(field) is None
    }
    return frozenset({*unions, *codec_options(), *detector_options()})


@functools.cache
def codec_options() -> dict[str, str]:
    """Return the options of codecs that have a flag of their own."""
    names = dotted_names()
    return {
        option: text
        for option, text in options_of_all("codec").items()
        if names[option] == f"codec.{option}"
    }


def _options() -> Iterator[inspect.Parameter]:
    yield _option("task", str, "the same as --dataset", "Task")
    yield _option("model", str, "model of the zoo; default: the dataset's own", "Task")
    for table, model in FIELDS.items():
        for name, field in model.model_fields.items():
            kind = _kind(field) or str
            short = short_name(f"{table}.{name}")
            yield _option(short, kind, _help(field), PANELS[table])
    text = "codec at the front cut: NAME or NAME:option=value,…"
    yield _option("codec", str, text + _default("lightsplit-f"), "Codec")
    for name, help_text in codec_options().items():
        yield _option(name, str, help_text, "Codec")
    yield _option("output_codec", str, "codec at the back cut; default: raw", "Wire")
    text = "values per sample of a shortened output; default: 48"
    yield _option("output_size", int, text, "Wire")
    text = "random change of training images: crop, flip or NAME:option=value,…; repeat"
    yield _option("augment", list[str], text, PANELS["training"])
    yield from _client_options()
    text = (
        "detector that watches the clients: NAME or NAME:option=value,…; repeat it or "
        "separate names by commas; only the first detector acts"
    )
    yield _option("detector", list[str], text, "Backdoors")
    descriptions = options_of_all("detector")
    for name in sorted(detector_options()):
        yield _option(name, str, f"detectors: {descriptions[name]}", "Backdoors")
    text = "inspector that clients watch the server with"
    yield _option("inspector", list[str], text, "Backdoors")
    text = "any setting by its dotted name, such as codec.ratio=8; repeatable"
    yield _option("set_", list[str], text, "Other", flag="--set")


def _client_options() -> Iterator[inspect.Parameter]:
    """Yield what clients choose without the server: objectives, label protections."""
    text = "term that clients add to their loss: NAME[:WEIGHT][,option=value…]; repeat"
    yield _option("objective", list[str], text, "Objectives")
    text = "within-class compaction (the paper's λ); short for --objective wcc:λ"
    yield _option("wcc", float, text, "Objectives")
    text = (
        "differential privacy ε of all codes that are sent of a sample; short for "
        "--objective dp:epsilon=ε"
    )
    yield _option("dp", float, text, "Objectives")
    text = (
        "what clients do so that messages tell less about labels: "
        "NAME[:option=value,…]; repeat"
    )
    yield _option("protect_labels", list[str], text, "Labels")
    text = "differential privacy ε of each label; short for --protect-labels label-dp"
    yield _option("label_dp", float, text, "Labels")


def _option(
    name: str, kind: Any, text: str, panel: str, *, flag: str = ""
) -> inspect.Parameter:
    flag = flag or "--" + name.replace("_", "-")
    option = typer.Option(
        f"{flag}/--no-{flag[2:]}" if kind is bool else flag,
        help=text,
        show_default=False,
        rich_help_panel=panel,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, option],
    )


def _kind(field: FieldInfo) -> type | None:
    """Return the type of an option; None if its text needs parsing."""
    plain = {bool, int, float, str}
    members = _members(field.annotation) - {type(None)}
    if len(members) == 1 and members <= plain:
        kind: type = members.pop()
        return kind
    return str if members <= {str} else None


def _members(annotation: Any) -> set[Any]:
    """Return the types that an annotation allows; a literal counts as text."""
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return set().union(*map(_members, get_args(annotation)))
    return {annotation} if isinstance(annotation, type) else {str}


def _help(field: FieldInfo) -> str:
    text = field.description or ""
    has_none = field.is_required() or field.default is None or "default:" in text
    return text if has_none else text + _default(field.default)


def _default(value: object) -> str:
    return f" [dim]\\[default: {value}]"
