"""Names of settings: tables in a file, dotted names in a list, short names as flags.

    [codec]
    ratio = 8          ──►  codec.ratio  ──►  --ratio

A setting's short name is its last part, except for those below. Short names are the
column headings of reports and CSV files, and the flags of the command line.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Tables = dict[str, Any]
Settings = dict[str, Any]

SHORT_NAMES = {
    "task.name": "dataset",
    "codec.name": "codec",
    "output_codec.name": "output_codec",
    "output_codec.size": "output_size",
    "wire.preset": "wire",
    "objective.wcc.weight": "wcc",
    "objective.dp.epsilon": "dp",
    "protect_labels.label-dp.epsilon": "label_dp",
    "guard.every": "detect_every",
}
NAMED = (
    "augment",
    "objective",
    "protect_labels",
    "detector",
    "inspector",
    "attack",
)  # tables of named parts


def flatten(tables: Mapping[str, Any]) -> Settings:
    """Return every setting under its short name.

    Tables of named parts keep their dotted names, and the names are listed:

    Example:
        >>> flatten({"codec": {"name": "raw"}, "detector": {"contra": {"k": 1}}})
        {'codec': 'raw', 'detector': 'contra', 'detector.contra.k': 1}
    """
    settings: Settings = {}
    for table, content in tables.items():
        if table in NAMED:
            if content:
                settings[table] = ",".join(content)
            settings |= {
                short_name(f"{table}.{name}.{key}"): value
                for name, options in content.items()
                for key, value in options.items()
            }
        else:
            settings |= {
                short_name(f"{table}.{key}"): value for key, value in content.items()
            }
    return settings


def short_name(dotted: str) -> str:
    """Return the short name of a setting; a short name stays the same.

    Example:
        >>> short_name("codec.name"), short_name("training.lr"), short_name("lr")
        ('codec', 'lr', 'lr')
        >>> short_name("detector.contra.threshold")
        'detector.contra.threshold'
    """
    if dotted in SHORT_NAMES:
        return SHORT_NAMES[dotted]
    table, *rest = dotted.split(".")
    return dotted if table in NAMED or not rest else ".".join(rest)


def nest(dotted: Mapping[str, Any]) -> Tables:
    """Return tables for settings under dotted names.

    Example:
        >>> nest({"codec.name": "raw", "objective.wcc.weight": 0.1})
        {'codec': {'name': 'raw'}, 'objective': {'wcc': {'weight': 0.1}}}
    """
    tables: Tables = {}
    for name, value in dotted.items():
        *path, last = name.split(".")
        table = tables
        for step in path:
            table = table.setdefault(step, {})
        table[last] = value
    return tables


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Tables:
    """Return the tables of ``base`` with the settings of ``changes`` replaced."""
    merged: Tables = {key: value for key, value in base.items() if key not in changes}
    for key, value in changes.items():
        before = base.get(key)
        is_table = isinstance(value, Mapping) and isinstance(before, Mapping)
        merged[key] = merge(before, value) if is_table else value  # type: ignore[arg-type]
    return {key: merged[key] for key in _in_order(base, changes)}


def _in_order(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Iterator[str]:
    yield from base
    yield from (key for key in changes if key not in base)
