"""Sweep files: a TOML file that describes a grid of experiments.

    title, about, paper   for readers; paper names the table or figure it repeats
    [base]                settings of every cell
    [grid]                settings with lists: every combination is a cell
    [[cells]]             a part of the grid with settings of its own (lists allowed)
    [[exclude]]           leaves out the cells that match all of these
    [scales.NAME]         changes that a scale (small, paper) makes to the above;
                          [scales.NAME.audit] changes the following
    [audit]               how ``lightsplit audit`` attacks every cell; with ``during``
                          learning attacks watch a second training

Settings have short names, as flags do, or dotted ones (``codec.ratio``); a table such
as [base.codec] means the same as dotted names. A change by a scale or ``--set``
replaces the setting in the [[cells]] that name it, or else in all cells.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightsplit.errors import ConfigError
from lightsplit.experiments.config import read_toml
from lightsplit.experiments.settings import known_as, known_settings
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
        name: the name of the file, without its ending.
        scale: the applied scale; empty if the file has none.
        common: settings of all cells; a list stands for several values.
        cells: the settings that each part of the grid adds.
        exclude: settings of the cells to leave out.
        scales: the names of the file's scales.
        audit: the options for ``lightsplit audit``.
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
    """Return the sweep in ``path`` at one of its scales, with ``changes`` applied."""
    content = read_toml(path)
    try:
        _check(content)
        chosen = _choose_scale(content.get("scales", {}), scale)
        common = {**_flat(content.get("base", {})), **_flat(content.get("grid", {}))}
        cells = [_flat(entry) for entry in content.get("cells", [{}])]
        settings, audit = _split_scale(content.get("scales", {}).get(chosen, {}))
        audit = {**content.get("audit", {}), **audit}
        make_audit_options(audit)
        for change in (settings, _flat(changes or {})):
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
        exclude=tuple(map(_flat, content.get("exclude", []))),
        scales=tuple(content.get("scales", {})),
        audit=audit,
    )


def _check(content: Settings) -> None:
    known = [*TEXTS, *TABLES, *LISTS]
    for key, value in content.items():
        if key not in known:
            raise ConfigError(unknown_name("part of a sweep", key, known))
        _check_kind(key, value)
    for key, value in _flat(content.get("base", {})).items():
        if isinstance(value, list):
            raise ConfigError(f"base.{key}: lists belong in [grid], got {value!r}")
    for name, entry in content.get("scales", {}).items():
        _check_kind(f"scales.{name}", entry)
    for where, settings in _settings_in(content):
        _check_kind(where, settings)
        _check_settings(where, _flat(settings))
    for where, table in _audits_in(content):
        _check_kind(where, table)
        _check_names(where, table, list(AUDIT_KEYS))


def _settings_in(content: Settings) -> Iterator[tuple[str, Settings]]:
    """Yield the name and the content of every table of settings."""
    for key in ("base", "grid"):
        yield key, content.get(key, {})
    for key in LISTS:
        for number, entry in enumerate(content.get(key, []), start=1):
            yield f"{key} {number}", entry
    for name, entry in content.get("scales", {}).items():
        yield f"scales.{name}", _split_scale(entry)[0]


def _audits_in(content: Settings) -> Iterator[tuple[str, Settings]]:
    """Yield the name and the content of every table for audits."""
    yield "audit", content.get("audit", {})
    for name, entry in content.get("scales", {}).items():
        yield f"scales.{name}.audit", _split_scale(entry)[1]


def _split_scale(scale: Settings) -> tuple[Settings, Settings]:
    """Return a scale's settings and its audit options."""
    settings = {key: value for key, value in scale.items() if key != "audit"}
    return _flat(settings), scale.get("audit", {})


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
    plain = {key: value for key, value in settings.items() if "." not in key}
    _check_names(where, plain, known_settings())
    for key, value in settings.items():
        if value == []:
            raise ConfigError(f"{where}.{key}: an empty list leaves no cell")


def _flat(settings: Any, path: str = "") -> Settings:
    """Return settings under dotted names, whether written in tables or not."""
    if not isinstance(settings, dict):
        return {}
    found: Settings = {}
    for key, value in settings.items():
        name = f"{path}.{key}" if path else key
        inner = _flat(value, name) if isinstance(value, dict) else {name: value}
        found |= {known_as(name): item for name, item in inner.items()}
    return found


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
