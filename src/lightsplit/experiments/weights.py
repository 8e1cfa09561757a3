"""Starting a run from earlier weights of the whole model or of a part."""

from pathlib import Path

from torch import nn

from lightsplit.errors import ConfigError
from lightsplit.results import tensors

_SHOWN = 5


def load_weights(model: nn.Module, path: Path) -> int:
    """Load the tensors of ``path`` into ``model`` and return their number.

    The file may hold only a part of the model, such as the backbone. Every name in it
    must be one of the model's, with its shape: a near miss is refused, not skipped.
    """
    given, own = tensors.load(path), model.state_dict()
    unknown = [name for name in given if name not in own]
    if unknown:
        raise ConfigError(f"{path} has tensors unknown to the model: {_some(unknown)}")
    misfits = [
        f"{name} is {tuple(given[name].shape)}, expected {tuple(own[name].shape)}"
        for name in given
        if given[name].shape != own[name].shape
    ]
    if misfits:
        raise ConfigError(f"{path}: {_some(misfits)}")
    model.load_state_dict(given, strict=False)
    return len(given)


def _some(items: list[str]) -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more
