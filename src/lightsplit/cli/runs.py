"""Which folder a command works in: a new one, or that of a run to go on with."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lightsplit.cli.settings import Settings, resolve
from lightsplit.errors import ConfigError
from lightsplit.experiments import Experiment
from lightsplit.results import RunFolder

MAY_CHANGE_ON_RESUME = {"epochs", "patience"}


@contextmanager
def opened_run(
    file: Path | None, settings: Settings, *, out: Path | None, resume: Path | None
) -> Iterator[tuple[Experiment, RunFolder]]:
    """Give the experiment and its folder; a new one that stays empty is taken away."""
    if resume is not None:
        yield _resumed(resume, file, settings, out)
        return
    experiment = resolve(file, settings)
    path = out or default_folder(experiment)
    is_new = not path.exists()
    folder = RunFolder.create(path)
    try:
        yield experiment, folder
    finally:
        if is_new:
            with suppress(OSError):  # it is not empty
                path.rmdir()


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
    name = "-".join(
        (
            experiment.dataset,
            experiment.model,
            experiment.cut,
            experiment.codec,
            f"{experiment.ratio:g}x",
            f"s{experiment.seed}",
        )
    )
    stamp = time.strftime("%Y%m%d-%H%M%S")
    path = Path("runs") / f"{name}-{stamp}"
    number = 1
    while path.exists():
        number += 1
        path = Path("runs") / f"{name}-{stamp}-{number}"
    return path
