"""Every setting of an experiment as an option of a command, written down once.

``takes_experiment`` gives a command one option per field of Experiment, with the
field's type and description; the command receives those that were given as one
dictionary.
"""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo

from lightsplit.experiments import Experiment, make_experiment, read_experiment
from lightsplit.experiments.config import BACKDOOR_SETTINGS
from lightsplit.experiments.presets import without_wire

Settings = dict[str, Any]


def takes_experiment(command: Callable[..., None]) -> Callable[..., None]:
    """Return ``command`` with an option for every setting in place of ``settings``."""
    own = list(inspect.signature(command).parameters.values())
    fields = Experiment.model_fields

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        settings = {name: given.pop(name) for name in fields}
        present = {k: v for k, v in settings.items() if v is not None}
        command(settings=present, **given)

    options = [_option(name, field) for name, field in fields.items()]
    kept = [parameter for parameter in own if parameter.name != "settings"]
    parameters = [*kept, *options]
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper


def resolve(file: Path | None, settings: Settings) -> Experiment:
    """Return the experiment in ``file``, changed by the options that were given."""
    base = read_experiment(file) if file is not None else {}
    if "wire" in settings:
        base = without_wire(base)
    return make_experiment({**base, **settings})


def _option(name: str, field: FieldInfo) -> inspect.Parameter:
    flag = "--" + name.replace("_", "-")
    names = [flag, f"--no-{flag[2:]}"] if field.annotation is bool else [flag]
    default = (
        "" if field.default in ("", None) else f" [dim]\\[default: {field.default}]"
    )
    if "default:" in (field.description or ""):
        default = ""
    option = typer.Option(
        names[0] if len(names) == 1 else "/".join(names),
        help=(field.description or "") + default,
        show_default=False,
        rich_help_panel="Backdoors" if name in BACKDOOR_SETTINGS else "Experiment",
    )
    kind = str if _is_choice(field) else field.annotation
    annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _is_choice(field: FieldInfo) -> bool:
    return field.annotation not in (bool, int, float, str)
