"""The recipe of an experiment: how gradients become updates."""

import torch

from lightsplit.errors import ConfigError
from lightsplit.experiments.tables import TrainingTable
from lightsplit.runtime import Precision, Recipe


def make_recipe(training: TrainingTable) -> Recipe:
    """Return the recipe that both ends of a run use."""
    return Recipe(
        schedule=training.lr_schedule,
        warm_up=training.warm_up,
        decay=training.lr_decay,
        drops=_drops(training.lr_drops),
        clip=training.clip,
        accumulate=training.accumulate,
    )


def make_precision(training: TrainingTable) -> Precision:
    """Return the number format that this end computes in."""
    return Precision(training.precision, torch.device(training.device).type)


def _drops(text: str) -> tuple[float, ...]:
    try:
        drops = tuple(float(part) for part in text.split(","))
    except ValueError:
        drops = ()
    if not drops or list(drops) != sorted(drops) or not 0 < drops[0] <= drops[-1] < 1:
        raise ConfigError(
            "lr_drops must be growing shares of the run between 0 and 1, such as "
            f"0.5,0.75, got {text!r}"
        )
    return drops
