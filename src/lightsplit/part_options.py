"""Options of a named part, as written on the command line or in a file.

    "decoder:blocks=4,lr=0.1" ──parse_part──► "decoder", {"blocks": 4, "lr": 0.1}
                                                  │
    the constructor's signature ──check_options───┴──► {"blocks": 4, "lr": 0.1}
                                                  │
                                  make_arguments ─┴──► constructor(**arguments)

A part's options are the keyword arguments of its constructor that take a number, a
truth value or text. A class that passes ``**options`` on to its base class has the
base class's options too, and an argument that takes a dataclass of settings stands for
the dataclass's fields. The caller names the arguments that it gives itself.
"""

import dataclasses
import difflib
import inspect
import json
import math
import re
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from lightsplit.errors import ConfigError

Value = int | float | bool | str
Options = dict[str, Value]

_PIECE = re.compile(
    r'(?:[^,"]|"(?:[^"\\]|\\.)*")+'
)  # a comma inside quotes does not separate
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def parse_part(text: str) -> tuple[str, Options]:
    """Return the name and the options of ``NAME`` or ``NAME:OPTION=VALUE,…``.

    A value is a whole number, a number, true, false, or else text. Quotes turn anything
    into text.
    """
    name, colon, rest = text.strip().partition(":")
    if not name or (colon and not rest):
        raise ConfigError(f"expected NAME or NAME:OPTION=VALUE,…, got {text!r}")
    options: Options = {}
    for piece in _PIECE.findall(rest):
        option, equals, value = (part.strip() for part in piece.partition("="))
        option = option.replace("-", "_")
        if not (option and equals and value):
            raise ConfigError(f"expected OPTION=VALUE in {text!r}, got {piece!r}")
        if option in options:
            raise ConfigError(f"the option {option!r} is given twice in {text!r}")
        options[option] = _parse_value(value)
    return name, options


def write_part(name: str, options: Mapping[str, Value]) -> str:
    """Return the text that ``parse_part`` reads as this name and these options."""
    written = ",".join(f"{key}={_write_value(options[key])}" for key in sorted(options))
    return f"{name}:{written}" if written else name


def known_options(
    constructor: Callable[..., object], *, given: frozenset[str] = frozenset()
) -> dict[str, inspect.Parameter]:
    """Return the options that a user may set, by name.

    Args:
        constructor: a class or a function.
        given: arguments that the caller supplies, so that a user cannot.
    """
    known: dict[str, inspect.Parameter] = {}
    for name, parameter in _parameters(constructor).items():
        if name in given:
            continue
        if _choices(parameter.annotation):
            known[name] = parameter
        known |= _fields(parameter)
    return known


def check_options(
    kind: str,
    name: str,
    constructor: Callable[..., object],
    options: Mapping[str, Any],
    *,
    given: frozenset[str] = frozenset(),
) -> Options:
    """Return the options as the constructor takes them, or raise ConfigError.

    Args:
        kind: the kind of the part, for the message, such as "attack".
        name: the name of the part.
        constructor: the class or function whose signature decides.
        options: the options as the user gave them.
        given: arguments that the caller supplies, so that a user cannot.
    """
    known = known_options(constructor, given=given)
    for option in options:
        if option not in known:
            raise ConfigError(_unknown(f"{kind} {name!r}", option, known))
    for option, parameter in known.items():
        if parameter.default is parameter.empty and option not in options:
            raise ConfigError(f"{kind} {name!r} needs the option {option!r}")
    return {
        option: _checked(f"{kind} {name!r}", known[option], value)
        for option, value in options.items()
    }


def make_arguments(
    constructor: Callable[..., object],
    options: Mapping[str, Value],
    *,
    given: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Return checked options as the constructor's arguments.

    The fields of a dataclass of settings are put into one object; other options stay
    unchanged.
    """
    arguments: dict[str, Any] = dict(options)
    for name, parameter in _parameters(constructor).items():
        fields = _fields(parameter) if name not in given else {}
        own = {field: arguments.pop(field) for field in fields if field in arguments}
        if own:
            has_default = parameter.default is not parameter.empty
            start = parameter.default if has_default else parameter.annotation()
            arguments[name] = dataclasses.replace(start, **own)
    return arguments


def _parse_value(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    if text.startswith('"'):
        return _unquoted(text)
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError as error:
        raise ConfigError(f"the quotes in {text!r} are not closed") from error


def _write_value(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return repr(value)
    is_plain = value.strip() == value != "" and not re.search(r'[",]', value)
    return value if is_plain and _parse_value(value) == value else json.dumps(value)


def _parameters(constructor: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """Return the named arguments, including those that ``**options`` passes on."""
    found: dict[str, inspect.Parameter] = {}
    for function in _functions(constructor):
        hints = get_type_hints(function)
        passes_on = False
        for parameter in inspect.signature(function).parameters.values():
            passes_on |= parameter.kind is parameter.VAR_KEYWORD
            if parameter.name in hints and parameter.kind in (
                parameter.KEYWORD_ONLY,
                parameter.POSITIONAL_OR_KEYWORD,
            ):
                typed = parameter.replace(annotation=hints[parameter.name])
                found.setdefault(parameter.name, typed)
        if not passes_on:
            break
    return found


def _functions(constructor: Callable[..., object]) -> Iterable[Callable[..., object]]:
    """Return the function, or the ``__init__`` of a class and of its bases in order."""
    if not isinstance(constructor, type):
        return [constructor]
    return [
        vars(base)["__init__"]
        for base in constructor.__mro__
        if base is not object and "__init__" in vars(base)
    ]


def _fields(parameter: inspect.Parameter) -> dict[str, inspect.Parameter]:
    """Return the simple fields of the dataclass that a parameter takes, if any."""
    settings = parameter.annotation
    if not (isinstance(settings, type) and dataclasses.is_dataclass(settings)):
        return {}
    fields = _parameters(settings)
    return {name: field for name, field in fields.items() if _choices(field.annotation)}


def _choices(annotation: Any) -> tuple[Any, ...]:
    """Return the types and literals allowed; nothing for any other annotation."""
    if annotation in _KINDS:
        return (annotation,)
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [
            _choices(part)
            for part in get_args(annotation)
            if part is not types.NoneType
        ]
        return tuple(choice for part in parts for choice in part) if all(parts) else ()
    return ()


def _checked(part: str, parameter: inspect.Parameter, value: Any) -> Value:
    """Return the value in the type that the parameter is declared with."""
    choices = _choices(parameter.annotation)
    is_finite = not isinstance(value, float) or math.isfinite(value)
    for choice in choices if is_finite else ():
        if type(value) is choice or (type(value) is type(choice) and value == choice):
            return value  # type: ignore[no-any-return]
    if float in choices and type(value) is int:
        return float(value)
    expected = " or ".join(_KINDS.get(choice, repr(choice)) for choice in choices)
    raise ConfigError(
        f"the option {parameter.name!r} of {part} must be {expected}, got {value!r}"
    )


def _unknown(part: str, option: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = difflib.get_close_matches(option, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    listed = f"known: {', '.join(names)}" if names else "it has none"
    return f"{part} has no option {option!r}; {listed}{hint}"
