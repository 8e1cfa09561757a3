"""The parts of a side's modules: buffers that belong to its state, objectives."""

from collections.abc import Sequence

from torch import nn

from lightsplit.errors import ConfigError
from lightsplit.objectives import WeightedObjective


def kept_buffers(modules: nn.ModuleDict) -> list[tuple[nn.Module, str]]:
    """Return the places of the buffers that belong to the state of a side."""
    kept = modules.state_dict().keys()
    return [
        (module, name)
        for path, module in modules.named_modules()
        for name, _ in module.named_buffers(recurse=False)
        if f"{path}.{name}" in kept
    ]


def by_name(objectives: Sequence[WeightedObjective]) -> nn.ModuleDict:
    """Return the objectives as modules; refuse duplicates."""
    names = [weighted.objective.name for weighted in objectives]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(
            f"expected each objective once, got {', '.join(twice)} more than once; "
            "add up its weights"
        )
    return nn.ModuleDict(
        {weighted.objective.name: weighted.objective for weighted in objectives}
    )
