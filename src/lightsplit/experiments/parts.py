"""Options of the parts that an experiment names, checked by the parts themselves.

The options of a codec, an objective, a detector or an inspector are its constructor's
parameters, except those that a run fills in (``GIVEN``). Defaults and types are the
constructor's too, so a new part or option needs no line here.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lightsplit.attacks import ATTACKS
from lightsplit.backdoors import DETECTORS, INSPECTORS
from lightsplit.codecs import CODECS, OUTPUT_CODECS
from lightsplit.data import AUGMENTATIONS
from lightsplit.errors import ConfigError
from lightsplit.objectives import OBJECTIVES
from lightsplit.part_options import check_options, known_options
from lightsplit.protections import LABEL_PROTECTIONS
from lightsplit.registry import Registry

Options = dict[str, Any]

GIVEN: dict[str, frozenset[str]] = {
    "codec": frozenset({"shape", "seed"}),
    "output_codec": frozenset({"shape", "seed", "classes"}),
    "objective": frozenset({"codec", "classes", "input_shape", "server", "releases"}),
    "protect_labels": frozenset({"classes"}),
    "detector": frozenset({"clients"}),
    "augment": frozenset(),
    "inspector": frozenset({"head", "classes", "seed", "client"}),
    "attack": frozenset({"form", "budget", "seed"}),
}
REGISTRIES: dict[str, Registry[Any]] = {
    "codec": CODECS,
    "output_codec": OUTPUT_CODECS,
    "objective": OBJECTIVES,
    "protect_labels": LABEL_PROTECTIONS,
    "detector": DETECTORS,
    "augment": AUGMENTATIONS,
    "inspector": INSPECTORS,
    "attack": ATTACKS,
}


def checked(table: str, name: str, options: Mapping[str, Any]) -> Options:
    """Return the valid options of a part, or raise ConfigError with the known ones."""
    registry = REGISTRIES[table]
    return dict(
        check_options(
            registry.kind, name, registry.get(name), options, given=_given(table, name)
        )
    )


def defaults(table: str, name: str) -> Options:
    """Return the options of a part with their defaults."""
    constructor = REGISTRIES[table].get(name)
    found = known_options(constructor, given=_given(table, name))
    return {
        option: parameter.default
        for option, parameter in found.items()
        if parameter.default not in (inspect.Parameter.empty, None)
    }


def options_of_all(table: str) -> dict[str, str]:
    """Return every option of any part of the kind, with its description.

    A plug-in that cannot be loaded is left out; naming it raises its error.
    """
    found: dict[str, str] = {}
    registry = REGISTRIES[table]
    for name in registry.names():
        try:
            part = registry.get(name)
        except ConfigError:
            continue
        for option in known_options(part, given=_given(table, name)):
            text = describe_option(part, option)
            found[option] = found.get(option) or text
    return found


def has_option(table: str, name: str, option: str) -> bool:
    """Return whether the part called ``name`` has an option of that name."""
    constructor = REGISTRIES[table].get(name)
    return option in known_options(constructor, given=_given(table, name))


def label(table: str, name: str, options: Mapping[str, Any]) -> str:
    """Return a part in a few words: its name, and each option that is not its default.

    A part with a better label has a static method ``label(options)``.
    """
    own = getattr(REGISTRIES[table].get(name), "label", None)
    if callable(own):
        return str(own(options))
    usual = defaults(table, name)
    words = [name]
    if options.get("ratio") not in (None, 1):
        words.append(f"{number_text(options['ratio'])}x")
    words += [
        _word(key, value)
        for key, value in sorted(options.items())
        if key != "ratio" and value != usual.get(key)
    ]
    return " ".join(words)


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def describe_option(part: Callable[..., Any], option: str) -> str:
    """Return what the docstring of a part says about one of its arguments."""
    for documented in _documented(part):
        lines = inspect.cleandoc(documented.__doc__ or "").splitlines()
        for number, line in enumerate(lines):
            head, colon, text = line.strip().partition(":")
            if colon and head == option:
                return " ".join([text.strip(), *_continued(lines[number:])])
    return ""


def _documented(part: Callable[..., Any]) -> Iterable[Any]:
    return part.__mro__ if isinstance(part, type) else [part]


def _continued(lines: list[str]) -> list[str]:
    """Return the more deeply indented lines, which continue the first one."""
    margin = len(lines[0]) - len(lines[0].lstrip())
    found = []
    for line in lines[1:]:
        if not line.strip() or len(line) - len(line.lstrip()) <= margin:
            break
        found.append(line.strip())
    return found


def _given(table: str, name: str) -> frozenset[str]:
    needs = getattr(REGISTRIES[table].get(name), "needs", ())
    return GIVEN[table] | (frozenset(needs) if table == "attack" else frozenset())


def _word(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is True:
        return key
    return (
        f"{key}={number_text(value)}" if isinstance(value, float) else f"{key}={value}"
    )
