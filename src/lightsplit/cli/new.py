"""``lightsplit new``: a task file to start from."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from lightsplit.cli import console
from lightsplit.errors import ConfigError
from lightsplit.results import atomic
from lightsplit.tasks.starting import Look, look_at, template

NEXT = """\
next:
  read {file}, and change what it says to change
  lightsplit train --task {file} --data-dir {folder}        try it in one process
  lightsplit serve --task {file} --clients N …            the server needs no data
  lightsplit join --task {file} --clients N --data {folder} --name NAME …
"""


def new(
    file: Annotated[Path, typer.Argument(help="the task file to write")],
    kind: Annotated[
        Literal["images", "segmentation", "table", "text"],
        typer.Option(help="what the samples are"),
    ] = "images",
    data: Annotated[
        Path | None,
        typer.Option(help="your folder: classes, columns and sizes are taken from it"),
    ] = None,
) -> None:
    """Write a task: a Python file with a model, a loss, metrics and a data function.

    The file runs as it is on a folder of the form that it describes at its top. With
    --data, classes, columns and sizes are filled in from the files of one owner; check
    that they hold for all owners, since all of them need the same file.

    [bold]Examples[/]

      lightsplit new my_task.py --kind images --data ./mine

      lightsplit new loans.py --kind table
    """
    with console.reported_errors():
        if file.suffix != ".py":
            raise ConfigError(
                f"a task is a Python file, such as my_task.py, not {file}"
            )
        if file.exists():
            raise ConfigError(f"{file} exists already; choose another name")
        found = Look(kind, {}, {}) if data is None else look_at(kind, data)
        atomic.write_text(file, template(found.template, found.settings))
    lines = [f"wrote {file}"]
    lines += [f"left out: {name} ({why})" for name, why in found.left_out.items()]
    for line in (*lines, ""):
        console.out.print(line, soft_wrap=True, highlight=False, markup=False)
    steps = NEXT.format(file=file, folder=data or "FOLDER")
    console.out.print(steps, soft_wrap=True, highlight=False, markup=False)
