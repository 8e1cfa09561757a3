"""The task that an experiment names, with the experiment's cut."""

import inspect
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from lightsplit.errors import ConfigError
from lightsplit.experiments.tables import SplitTable, TaskTable
from lightsplit.tasks import Task, find_task, make_task, task_file

_Version = tuple[str, int] | tuple[()]


def load_task(table: TaskTable, split: SplitTable) -> Task:
    """Return the task with the cut of ``split``, or with its own by default."""
    options = dict(table.options)
    if split.cut is not None and "cut" in task_options(table.name):
        options["cut"] = split.cut
    given = tuple(sorted(options.items()))
    task = _make(table.name, given, _version(table.name))
    if split.cut not in (None, task.cut):
        raise ConfigError(
            f"{table.name} has no named cuts; use head_until and tail_from, "
            f"got cut {split.cut!r}"
        )
    return replace(
        task,
        head_until=split.head_until or task.head_until,
        tail_from=split.tail_from or task.tail_from,
    )


def task_options(name: str) -> frozenset[str]:
    """Return the option names of the function that makes a task."""
    return _options(name, _version(name))


def _version(name: str) -> _Version:
    """Return a value that changes with the file of a task; empty without a file."""
    file = task_file(name)
    if file is None or not file.is_file():
        return ()
    return (str(file.resolve()), file.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _options(name: str, _version: _Version) -> frozenset[str]:
    return frozenset(inspect.signature(find_task(name)).parameters)


@lru_cache(maxsize=64)
def _make(name: str, options: tuple[tuple[str, Any], ...], _version: _Version) -> Task:
    known: Mapping[str, Any] = dict(options)
    return make_task(name, known)
