"""The state of an optimizer as named tensors, beside the weights of its side."""

from torch import Tensor
from torch.optim import Optimizer

_PREFIX = "optimizer."


def is_optimizer_state(name: str) -> bool:
    """Return whether a name in a side's ``state()`` is the optimizer's."""
    return name.startswith(_PREFIX)


def slot_of(name: str) -> int | None:
    """Return to which of an optimizer's parameters a name belongs; None for weights."""
    return int(name.split(".")[1]) if is_optimizer_state(name) else None


def optimizer_tensors(optimizer: Optimizer | None) -> dict[str, Tensor]:
    """Return the tensors that an optimizer keeps, under flat names."""
    if optimizer is None:
        return {}
    return {
        f"{_PREFIX}{index}.{name}": value
        for index, slots in optimizer.state_dict()["state"].items()
        for name, value in slots.items()
        if value is not None
    }


def load_optimizer_tensors(optimizer: Optimizer, state: dict[str, Tensor]) -> None:
    """Load the optimizer's part of a state; without one it starts anew."""
    slots: dict[int, dict[str, Tensor]] = {}
    for key, value in state.items():
        if is_optimizer_state(key):
            index, name = key.removeprefix(_PREFIX).split(".", 1)
            slots.setdefault(int(index), {})[name] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": slots, "param_groups": groups})
