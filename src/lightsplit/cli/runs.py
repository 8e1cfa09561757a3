"""The folder that a command works in: a new one, or that of the run to resume."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lightsplit.cli.settings import Settings, resolve
from lightsplit.errors import ConfigError
from lightsplit.experiments import Experiment
from lightsplit.experiments.labels import slug
from lightsplit.results import RunFolder
from lightsplit.results.holding import Hold

MAY_CHANGE_ON_RESUME = {"epochs", "patience"}


@contextmanager
def opened_run(
    file: Path | None, settings: Settings, *, out: Path | None, resume: Path | None
) -> Iterator[tuple[Experiment, RunFolder]]:
    """Yield the experiment and its folder; remove new folders that stay empty.

    No other process may work in the folder meanwhile.
    """
    if resume is not None:
        experiment, folder = _resumed(resume, file, settings, out)
        with Hold(folder.path):
            folder.remove_drafts()
            yield experiment, folder
        return
    experiment = resolve(file, settings)
    path = out or default_folder(experiment)
    new = [one for one in (path, *path.parents) if not one.exists()]
    folder = RunFolder.create(path)
    try:
        with Hold(path):
            yield experiment, folder
    finally:
        with suppress(OSError):  # it is not empty
            for one in new:
                one.rmdir()


def chosen_experiment(
    file: Path | None, settings: Settings, *, out: Path | None, resume: Path | None
) -> Experiment:
    """Return the experiment of a process that has no folder of its own."""
    if resume is None:
        return resolve(file, settings)
    return _resumed(resume, file, settings, out)[0]


def _resumed(
    resume: Path, file: Path | None, settings: Settings, out: Path | None
) -> tuple[Experiment, RunFolder]:
    fixed = sorted(settings.keys() - MAY_CHANGE_ON_RESUME)
    if fixed or file or out:
        raise ConfigError(
            "--resume takes the run's own settings; only "
            f"{', '.join(sorted(MAY_CHANGE_ON_RESUME))} may change, got "
            f"{', '.join(fixed) or 'a file or --out'}"
        )
    folder = RunFolder.open(resume)
    return resolve(folder.experiment_file, settings), folder


def default_folder(experiment: Experiment) -> Path:
    """Return a folder under runs/ that does not exist yet."""
    name = slug(experiment)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    path = Path("runs") / f"{name}-{stamp}"
    number = 1
    while path.exists():
        number += 1
        path = Path("runs") / f"{name}-{stamp}-{number}"
    return path
