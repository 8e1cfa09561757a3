"""Settings under short names, as flags and grids give them, turned into tables.

    {"ratio": 8, "codec": "lightsplit-l:hidden=64", "wcc": 0.01}
      ──►  {"codec": {"name": "lightsplit-l", "hidden": 64, "ratio": 8},
            "objective": {"wcc": {"weight": 0.01}}}

A dotted name (``codec.ratio``) always works. A short name stands for a field of a
table, an option of some codec, or an option of the named detectors.
"""

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import tomli_w
from pydantic import BaseModel

from lightsplit.backdoors import DETECTORS
from lightsplit.errors import ConfigError
from lightsplit.experiments import parts
from lightsplit.experiments.tables import (
    BackdoorTable,
    GuardTable,
    OwnersTable,
    ServerTable,
    SplitTable,
    TaskTable,
    TrainingTable,
    WireTable,
)
from lightsplit.part_options import parse_part
from lightsplit.registry import unknown_name
from lightsplit.results.settings import NAMED, merge, nest, short_name

Tables = dict[str, Any]
Settings = Mapping[str, Any]

FIELDS: dict[str, type[BaseModel]] = {
    "task": TaskTable,
    "split": SplitTable,
    "wire": WireTable,
    "training": TrainingTable,
    "owners": OwnersTable,
    "guard": GuardTable,
    "backdoor": BackdoorTable,
    "server": ServerTable,
}
PARTS = ("codec", "output_codec")


@cache
def dotted_names() -> dict[str, str]:
    """Return the dotted name of every setting that has a short name."""
    known = {
        short_name(f"{table}.{field}"): f"{table}.{field}"
        for table, model in FIELDS.items()
        for field in model.model_fields
    }
    known |= {"task": "task.name", "model": "task.model"}
    known |= {"output_size": "output_codec.size", "wcc": "objective.wcc.weight"}
    known |= {"label_dp": "protect_labels.label-dp.epsilon"}
    known |= {"dp": "objective.dp.epsilon"}
    for option in parts.options_of_all("codec"):
        known.setdefault(option, f"codec.{option}")
    return known


@cache
def detector_options() -> frozenset[str]:
    """Return the detector options that have a short name."""
    return frozenset(parts.options_of_all("detector")) - dotted_names().keys()


def known_as(name: str) -> str:
    """Return the name under which a setting is listed: the short one if there is one.

    Example:
        >>> known_as("codec.ratio"), known_as("task"), known_as("task.width")
        ('ratio', 'dataset', 'task.width')
    """
    dotted = dotted_names().get(name, name)
    short = short_name(dotted)
    is_known = short in SPECIAL or dotted_names().get(short) == dotted
    return short if is_known else name


def to_tables(settings: Settings) -> Tables:
    """Return tables for settings under short or dotted names; None means not given."""
    given = _given(settings)
    tables: Tables = {}
    for name, value in given.items():
        if name in SPECIAL:
            tables = merge(tables, SPECIAL[name](value))
        elif name not in detector_options():
            tables = merge(tables, nest({_dotted(name): value}))
    shared = {key: given[key] for key in detector_options() if key in given}
    return _with_detector_options(tables, shared) if shared else tables


def _given(settings: Settings) -> Tables:
    """Return the settings that have a value; refuse a setting given under two names."""
    given: Tables = {}
    names: dict[str, str] = {}
    for name, value in settings.items():
        if value is None:
            continue
        other = names.setdefault(known_as(name), name)
        if other != name and given[other] != value:
            raise ConfigError(
                f"{other} and {name} are the same setting: give only one of them, "
                f"got {given[other]!r} and {value!r}"
            )
        given[name] = value
    return given


def known_settings() -> list[str]:
    """Return every short name."""
    return sorted({*dotted_names(), *SPECIAL, *detector_options()})


def old_form(name: str, value: Any) -> str:
    """Return an error message that says how to write a setting in its table."""
    head, shown = "an experiment file has tables", _value(value)
    if name in SPECIAL or name in dotted_names():
        tables = to_tables({name: value})
        return f"{head}: instead of {name} = {shown} write {_toml(tables)}"
    if name in detector_options():
        tables = {"detector": {"NAME": {name: value}}}
        return f"{head}: instead of {name} = {shown} write {_toml(tables)}"
    return f"{head}: expected a table such as [codec], got {name} = {shown}"


def _toml(tables: Tables, path: str = "") -> str:
    """Return tables as a TOML text on one line."""
    words = []
    for name, content in tables.items():
        where = f"{path}.{name}" if path else name
        plain = {k: v for k, v in content.items() if not isinstance(v, Mapping)}
        deeper = {k: v for k, v in content.items() if isinstance(v, Mapping)}
        if plain or not deeper:
            shown = ", ".join(f"{k} = {_value(v)}" for k, v in plain.items())
            words.append(f"[{where}] {shown}".strip())
        if deeper:
            words.append(_toml(deeper, where))
    return " ".join(words)


def _value(value: Any) -> str:
    """Return a value as TOML on one line."""
    return tomli_w.dumps({"value": value}).strip().partition(" = ")[2]


def _dotted(name: str) -> str:
    if "." in name:
        return name
    if name not in dotted_names():
        raise ConfigError(unknown_name("setting", name, known_settings()))
    return dotted_names()[name]


def _with_detector_options(tables: Tables, shared: Settings) -> Tables:
    """Give each option to every named detector that accepts it."""
    named: Mapping[str, Any] = tables.get("detector", {})
    for option in shared:
        if not any(parts.has_option("detector", name, option) for name in named):
            quoted = ", ".join(map(repr, named)) or "none"
            raise ConfigError(f"{option} is not a setting of detector {quoted}")
    _check_one_scale(named, shared)
    added = {
        name: {
            option: value
            for option, value in shared.items()
            if parts.has_option("detector", name, option)
        }
        for name in named
    }
    return merge(tables, {"detector": added})


def _check_one_scale(names: Mapping[str, Any], shared: Settings) -> None:
    """Refuse one threshold for detectors whose scores are on different scales."""
    scales = {name: getattr(DETECTORS.get(name), "own_threshold", 0) for name in names}
    if "threshold" in shared and len(set(scales.values())) > 1:
        own = ", ".join(f"{name} {value:g}" for name, value in scales.items())
        raise ConfigError(
            f"one threshold cannot fit scores of different scales: {own}; give each "
            "detector its own"
        )


def _texts(value: Any) -> list[str]:
    """Return the parts named in a text or in a list of texts."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        return list(value)
    raise ConfigError(f"expected a name or a list of names, got {value!r}")


def _one_part(table: str) -> Callable[[Any], Tables]:
    def read(value: Any) -> Tables:
        texts = _texts(value)
        if len(texts) != 1:
            raise ConfigError(f"expected one {table}, got {', '.join(texts) or 'none'}")
        name, options = parse_part(texts[0])
        return {table: {"name": name, **options}}

    return read


def _named_parts(table: str) -> Callable[[Any], Tables]:
    def read(value: Any) -> Tables:
        texts = [text for given in _texts(value) for text in _separate(given)]
        found = dict(map(parse_part, texts))
        if len(found) < len(texts):
            raise ConfigError(f"each {table} can be named only once, got {value!r}")
        return {table: found}

    return read


def _separate(text: str) -> list[str]:
    """Return the names in ``a,b``; a text with options names a single part."""
    return [text] if ":" in text else [part.strip() for part in text.split(",")]


def _objectives(value: Any) -> Tables:
    """Read NAME, NAME:WEIGHT, NAME:option=value or NAME:WEIGHT,option=value."""
    found: Tables = {}
    for text in _texts(value):
        name, colon, rest = text.partition(":")
        weight, comma, options = rest.partition(",")
        if not colon or "=" in weight:
            weight, comma, options = "1", colon, rest
        try:
            number = float(weight)
        except ValueError:
            raise ConfigError(
                "expected NAME, NAME:WEIGHT or NAME:WEIGHT,option=value…, "
                f"got objective {text!r}"
            ) from None
        _, more = parse_part(f"{name}:{options}") if comma else (name, {})
        found[name.strip()] = {"weight": number, **more}
    return {"objective": found}


def _compaction(value: Any) -> Tables:
    """Read the paper's λ; 0 is a loss without the term."""
    is_none = value == 0 and not isinstance(value, bool)
    return {} if is_none else {"objective": {"wcc": {"weight": value}}}


def _label_dp(value: Any) -> Tables:
    """Read the ε of label differential privacy."""
    return {"protect_labels": {"label-dp": {"epsilon": value}}}


def _dp(value: Any) -> Tables:
    """Read the ε of differential privacy of codes."""
    return {"objective": {"dp": {"epsilon": value}}}


SPECIAL: dict[str, Callable[[Any], Tables]] = {
    **{table: _one_part(table) for table in PARTS},
    **{table: _named_parts(table) for table in NAMED if table != "objective"},
    "objective": _objectives,
    "wcc": _compaction,
    "label_dp": _label_dp,
    "dp": _dp,
}


def parse_value(text: Any) -> Any:
    """Return the TOML value of a text, or the text itself if it is none.

    Example:
        >>> parse_value("8"), parse_value("[8, 16]"), parse_value("raw")
        (8, [8, 16], 'raw')
    """
    if not isinstance(text, str):
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def parse_change(text: str) -> tuple[str, Any]:
    """Return the setting and the value of ``key=value``; a bare word stays a text.

    Example:
        >>> parse_change("ratio=[8, 16]"), parse_change("codec=raw")
        (('ratio', [8, 16]), ('codec', 'raw'))
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"expected key=value, got {text!r}")
    return key.strip(), parse_value(value)
