"""Which folder a command works in: a new one, or that of a run to go on with."""

import time
from pathlib import Path

from lightsplit.cli.settings import Settings, resolve
from lightsplit.errors import ConfigError
from lightsplit.experiments import Experiment
from lightsplit.results import RunFolder

MAY_CHANGE_ON_RESUME = {"epochs", "patience"}


def open_run(
    file: Path | None, settings: Settings, *, out: Path | None, resume: Path | None
) -> tuple[Experiment, RunFolder]:
    """Return the experiment and its folder, made anew or opened again."""
    if resume is None:
        experiment = resolve(file, settings)
        path = out or default_folder(experiment)
        return experiment, RunFolder.create(path)
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
