"""A task by its name: a built-in one, a plug-in's, or a user's own.

digits                  built in, or an installed package's entry point
my_task.py              the function ``task`` in a file
my_task.py:other        another function in it
package.module:name     a function in an installed module
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lightsplit.errors import ConfigError
from lightsplit.part_options import check_options
from lightsplit.tasks.base import TASKS, Task
from lightsplit.user_code import one_line_errors

DEFAULT_FUNCTION = "task"


def is_own(name: str) -> bool:
    """Return whether ``name`` is a file or a module, not a registered task."""
    return ":" in name or name.endswith(".py")


def task_file(name: str) -> Path | None:
    """Return the file of a task; None for a registered one or one of a module."""
    place = name.rpartition(":")[0] if ":" in name else name
    return Path(place) if place.endswith(".py") else None


def find_task(name: str) -> Callable[..., Task]:
    """Return the function that makes the task called ``name``."""
    if not is_own(name):
        return TASKS.get(name)
    place, _, function = name.rpartition(":") if ":" in name else (name, "", "")
    function = function or DEFAULT_FUNCTION
    module = _import(place)
    if not hasattr(module, function):
        raise ConfigError(f"{place} has no function {function!r} that makes a task")
    found = getattr(module, function)
    if not callable(found):
        raise ConfigError(
            f"{function!r} in {place} must be a function that returns a Task, "
            f"got {type(found).__name__}"
        )
    return found  # type: ignore[no-any-return]


def make_task(name: str, options: Mapping[str, Any]) -> Task:
    """Return the task called ``name``, made with ``options`` of its function."""
    make = find_task(name)
    checked = check_options("task", name, make, options)
    with one_line_errors(f"the task {name} cannot be made"):
        task = make(**checked)
    if not isinstance(task, Task):
        raise ConfigError(
            f"the task {name} must be a lightsplit.Task, got {type(task).__name__}"
        )
    named = replace(task, name=_label(name))
    if is_own(name) or TASKS.is_plug_in(name):
        named.check()
    return named


def _import(place: str) -> Any:
    with one_line_errors(f"cannot import the task {place}"):
        if not place.endswith(".py"):
            return importlib.import_module(place)
        return _import_file(Path(place).resolve())


def _import_file(path: Path) -> Any:
    if not path.is_file():
        raise ConfigError(
            f"there is no task file {path}; a name counts from the folder that the "
            "command is started in"
        )
    name = f"lightsplit_task_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that its classes can be found by module name
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def _label(name: str) -> str:
    """Return a short label of a task's name, without the folder.

    Example:
        >>> _label("work/my_task.py"), _label("my_task.py:other"), _label("a.b:c")
        ('my_task', 'my_task:other', 'a.b:c')
    """
    place, _, function = name.partition(":")
    place = Path(place).stem if place.endswith(".py") else place
    return f"{place}:{function}" if function and function != DEFAULT_FUNCTION else place
