"""A model for plans: its shapes count, its weights do not."""

import json
from functools import lru_cache

import torch
from torch import Tensor

from lightsplit.experiments import pieces
from lightsplit.experiments.config import Experiment, make_experiment
from lightsplit.experiments.cuts import Cuts
from lightsplit.protocol.phases import LOCAL, TRAIN
from lightsplit.splitting import SplitModel


def model_tables(experiment: Experiment) -> str:
    """Return the tables that determine the model, apart from its first weights."""
    any_start = {"weights": None, "train_limit": None, "test_limit": None}
    tables = experiment.changed(task=any_start).tables()
    return json.dumps({name: tables[name] for name in ("task", "split")})


def planned_parts(experiment: Experiment) -> SplitModel:
    """Return parts with arbitrary weights, cached because many plans share a model."""
    return _cached_parts(model_tables(experiment))


def result_shape(experiment: Experiment) -> tuple[int, ...]:
    """Return the shape of the model's result for one sample."""
    whole = planned_parts(experiment).whole.eval()
    with torch.no_grad():
        result: Tensor = whole(experiment.make_task().example_inputs())
    return tuple(result.shape[1:])


def hand_off_bytes(
    experiment: Experiment, cuts: Cuts, *, has_server: bool = True
) -> int:
    """Return the bytes of a hand-off after the optimizer's first step.

    Args:
        experiment: of the run.
        cuts: of its model.
        has_server: whether the server takes part in the steps; before it does, the
            tail is not trained.
    """
    side = pieces.make_client_side(experiment, pieces.private_cuts(cuts))
    hand_off = pieces.make_hand_off(experiment, side)
    for name, parameter in side.modules.named_parameters():
        if not has_server and name.startswith(("tail.", "decoder.")):
            continue
        parameter.grad = torch.zeros_like(parameter)
    side.update()
    return hand_off.size_bytes(side, TRAIN if has_server else LOCAL)


@lru_cache(maxsize=8)
def _cached_parts(tables: str) -> SplitModel:
    return pieces.load_parts(make_experiment(json.loads(tables)))
