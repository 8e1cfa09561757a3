"""Differential privacy of codes (``--dp``): what it supports and what it promises."""

from typing import TYPE_CHECKING, Any

from torch import nn

from lightsplit.errors import ConfigError
from lightsplit.objectives import DifferentialPrivacy

if TYPE_CHECKING:
    from lightsplit.codecs import Codec
    from lightsplit.experiments.config import Experiment

MIXERS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
NAME = DifferentialPrivacy.name
NO_PROMISE: dict[str, Any] = dict.fromkeys(
    ("epsilon", "delta", "dp_mechanism", "dp_kept", "dp_scope")
)


def dp_promise(experiment: "Experiment", codec: "Codec") -> dict[str, Any]:
    """Return the promise about codes; all of its values are None without ``--dp``."""
    if NAME not in experiment.objective:
        return NO_PROMISE
    options = experiment.objective[NAME].options
    return DifferentialPrivacy(codec, experiment.releases, **options).promise()


def check_dp(experiment: "Experiment") -> None:
    """Refuse settings that make a promise about codes void or pointless."""
    if NAME not in experiment.objective:
        return
    task = experiment.make_task()
    reasons = {
        "its weight must be 1: with 0 it would change no code": (
            experiment.objective[NAME].weight != 1
        ),
        "codec none sends no code that it could be about: drop --dp": (
            experiment.codec.name == "none"
        ),
        "in the vanilla topology labels go to the server beside the codes: use u": (
            experiment.split.topology == "vanilla"
        ),
        f"the server gets {', '.join(task.share)} as they are, without noise: choose a "
        "cut that shares no input": bool(task.share),
    }
    for reason, holds in reasons.items():
        if holds:
            raise ConfigError(f"dp is a promise about codes, but {reason}")
    if not experiment.sends_once:
        _check_counted(experiment)


def _check_counted(experiment: "Experiment") -> None:
    """Refuse a run in which a code may be sent more often than once per epoch."""
    training = experiment.training
    if training.turn_steps != "epoch" and experiment.owners.clients > 1:
        raise ConfigError(
            "dp counts one release of a code per epoch, but with turns of "
            f"{training.turn_steps} batches an owner with few samples sends them more "
            "often: give --turn-steps epoch, or --release once"
        )
    if training.eval_every is not None:
        raise ConfigError(
            "dp counts one release of a test sample's code per epoch: drop eval_every, "
            "or give --release once"
        )


def check_code_of_its_own(experiment: "Experiment", *modules: nn.Module) -> None:
    """Refuse modules that let a sample change the codes of others in its batch."""
    if NAME not in experiment.objective or experiment.sends_once:
        return
    if any(isinstance(m, MIXERS) for top in modules for m in top.modules()):
        raise ConfigError(
            "dp needs a code that depends on its own sample alone, but in training the "
            "BatchNorm of this head or encoder mixes the samples of a batch: give "
            "--release once, or cut before it"
        )
