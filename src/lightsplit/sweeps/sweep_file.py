"""Sweep files: one TOML file stands for a grid of experiments.

    title, about, paper   for people; paper names the table or figure it repeats
    [base]                settings of every cell
    [grid]                settings with lists: every combination is a cell
    [[cells]]             a part of the grid with settings of its own (lists allowed)
    [[exclude]]           cells that match all of these are left out
    [scales.NAME]         what a scale (small, paper) changes in the above, and in
                          [scales.NAME.audit] of the following
    [audit]               how ``lightsplit audit`` is to look at every cell; with
                          ``during`` attacks that learn watch it train once more

Settings are those of an experiment file. What a scale or ``--set`` changes is replaced
where the file has it: in the [[cells]] that name the setting, else for all cells.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightsplit.errors import ConfigError
from lightsplit.experiments import Experiment, read_experiment
from lightsplit.registry import unknown_name
from lightsplit.sweeps.audit_table import AUDIT_KEYS, make_audit_options

Settings = dict[str, Any]

TEXTS = ("title", "about", "paper")
TABLES = ("base", "grid", "scales", "audit")
LISTS = ("cells", "exclude")
DEFAULT_SCALE = "small"


@dataclass(frozen=True)
class Sweep:
    """A sweep file with its scale and changes applied.

    Attributes:
        name: of the file, without its ending.
        scale: that was applied; empty where the file has none.
        common: settings of all cells, lists standing for several values.
        cells: what the parts of the grid add to them.
        exclude: settings whose cells are left out.
        scales: the names that the file offers.
        audit: the table for ``lightsplit audit``.
    """

    name: str
    title: str = ""
    about: str = ""
    paper: str = ""
    scale: str = ""
    common: Settings = field(default_factory=dict)
    cells: tuple[Settings, ...] = ({},)
    exclude: tuple[Settings, ...] = ()
    scales: tuple[str, ...] = ()
    audit: Settings = field(default_factory=dict)


def read_sweep(
    path: Path, *, scale: str = "", changes: Settings | None = None
) -> Sweep:
    """Return the sweep in ``path`` at one of its scales, with ``changes`` made."""
    content = read_experiment(path)
    try:
        _check(content)
        chosen = _choose_scale(content.get("scales", {}), scale)
        common = {**content.get("base", {}), **content.get("grid", {})}
        cells = [dict(entry) for entry in content.get("cells", [{}])]
        settings, audit = _split_scale(content.get("scales", {}).get(chosen, {}))
        audit = {**content.get("audit", {}), **audit}
        make_audit_options(audit)
        for change in (settings, changes or {}):
            _check_settings("--set", change)
            _replace(common, cells, change)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return Sweep(
        name=path.stem,
        **{name: content.get(name, "") for name in TEXTS},
        scale=chosen,
        common=common,
        cells=tuple(cells),
        exclude=tuple(content.get("exclude", [])),
        scales=tuple(content.get("scales", {})),
        audit=audit,
    )


def parse_change(text: str) -> tuple[str, Any]:
    """Return the setting and the value of ``key=value``; a bare word is a string.

    Example:
        >>> parse_change("ratio=[8, 16]"), parse_change("codec=raw")
        (('ratio', [8, 16]), ('codec', 'raw'))
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"expected key=value, got {text!r}")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def _check(content: Settings) -> None:
    known = [*TEXTS, *TABLES, *LISTS]
    for key, value in content.items():
        if key not in known:
            raise ConfigError(unknown_name("part of a sweep", key, known))
        _check_kind(key, value)
    for key, value in content.get("base", {}).items():
        if isinstance(value, list):
            raise ConfigError(f"base.{key}: a list belongs into [grid], got {value!r}")
    for name, entry in content.get("scales", {}).items():
        _check_kind(f"scales.{name}", entry)
    for where, settings in _settings_in(content):
        _check_kind(where, settings)
        _check_settings(where, settings)
    for where, table in _audits_in(content):
        _check_kind(where, table)
        _check_names(where, table, list(AUDIT_KEYS))


def _settings_in(content: Settings) -> Iterator[tuple[str, Settings]]:
    """Yield every table of settings with its name."""
    for key in ("base", "grid"):
        yield key, content.get(key, {})
    for key in LISTS:
        for number, entry in enumerate(content.get(key, []), start=1):
            yield f"{key} {number}", entry
    for name, entry in content.get("scales", {}).items():
        yield f"scales.{name}", _split_scale(entry)[0]


def _audits_in(content: Settings) -> Iterator[tuple[str, Settings]]:
    """Yield every table for audits with its name."""
    yield "audit", content.get("audit", {})
    for name, entry in content.get("scales", {}).items():
        yield f"scales.{name}.audit", _split_scale(entry)[1]


def _split_scale(scale: Settings) -> tuple[Settings, Settings]:
    """Return what a scale says of settings, and what it says of audits."""
    settings = {key: value for key, value in scale.items() if key != "audit"}
    return settings, scale.get("audit", {})


def _check_kind(key: str, value: Any) -> None:
    if key in TEXTS:
        fits, expected = isinstance(value, str), "a text"
    elif key in LISTS:
        fits = isinstance(value, list) and all(isinstance(v, dict) for v in value)
        expected = f"tables written as [[{key}]]"
    else:
        fits, expected = isinstance(value, dict), f"a table [{key}]"
    if not fits:
        raise ConfigError(f"{key}: expected {expected}, got {value!r}")


def _check_settings(where: str, settings: Settings) -> None:
    _check_names(where, settings, list(Experiment.model_fields))
    for key, value in settings.items():
        if value == []:
            raise ConfigError(f"{where}.{key}: an empty list leaves no cell")


def _check_names(where: str, settings: Settings, known: list[str]) -> None:
    for key in settings:
        if key not in known:
            raise ConfigError(f"{where}: {unknown_name('setting', key, known)}")


def _choose_scale(scales: Settings, wanted: str) -> str:
    if not wanted:
        return DEFAULT_SCALE if DEFAULT_SCALE in scales else next(iter(scales), "")
    if wanted not in scales:
        raise ConfigError(unknown_name("scale", wanted, list(scales)))
    return wanted


def _replace(common: Settings, cells: list[Settings], change: Settings) -> None:
    for key, value in change.items():
        owners = [entry for entry in cells if key in entry] or [common]
        for owner in owners:
            owner[key] = value
