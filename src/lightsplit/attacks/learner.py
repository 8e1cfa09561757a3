"""A network of an attacker and its optimizer, to train and to save together.

descend([learners], [losses])      one step of each down the sum of the losses
learner.state() / learner.load()   weights, buffers and optimizer as named tensors
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from lightsplit.errors import RunError

M = TypeVar("M", bound=nn.Module)
_SLOTS = "optimizer."


class Learner:
    """A network and the Adam that trains it."""

    def __init__(self, network: nn.Module, lr: float, *, eps: float = 1e-8) -> None:
        self.network = network
        self.weights = [w for w in network.parameters() if w.requires_grad]
        self.optimizer = torch.optim.Adam(self.weights, lr=lr, eps=eps, fused=True)

    def state(self) -> dict[str, Tensor]:
        """Return everything that learning has changed, under flat names."""
        slots = {
            f"{_SLOTS}{index}.{name}": value
            for index, kept in self.optimizer.state_dict()["state"].items()
            for name, value in kept.items()
        }
        return {**self.network.state_dict(), **slots}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load the state that ``state()`` of an equal learner returned."""
        weights = {k: v for k, v in state.items() if not k.startswith(_SLOTS)}
        slots: dict[int, dict[str, Tensor]] = {}
        for key in state.keys() - weights.keys():
            index, name = key.removeprefix(_SLOTS).split(".", 1)
            slots.setdefault(int(index), {})[name] = state[key].clone()
        groups = self.optimizer.state_dict()["param_groups"]
        try:
            self.network.load_state_dict(weights)
            self.optimizer.load_state_dict({"state": slots, "param_groups": groups})
        except (RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise RunError(f"the state does not fit this attack: {reason}") from error


def descend(
    learners: Sequence[Learner],
    tensors: Sequence[Tensor],
    gradients: Sequence[Tensor | None] | None = None,
) -> None:
    """Take a step of each learner down the sum of losses.

    Args:
        learners: the networks to change; no other weight gets a gradient.
        tensors: losses, or tensors whose gradients are known.
        gradients: of the tensors; None for a loss.
    """
    for learner in learners:
        learner.optimizer.zero_grad()
    weights = [weight for learner in learners for weight in learner.weights]
    torch.autograd.backward(tensors, gradients, inputs=weights)
    for learner in learners:
        learner.optimizer.step()


def states(learners: Mapping[str, Learner]) -> dict[str, Tensor]:
    """Return the states of named learners as one."""
    return {
        f"{name}/{key}": value
        for name, learner in learners.items()
        for key, value in learner.state().items()
    }


def load_states(learners: Mapping[str, Learner], state: Mapping[str, Tensor]) -> None:
    """Load the state that ``states`` of equal learners returned."""
    for name, learner in learners.items():
        mine = f"{name}/"
        learner.load(
            {k.removeprefix(mine): v for k, v in state.items() if k.startswith(mine)}
        )


def frozen(network: M) -> M:
    """Return the network in evaluation mode, with all weights fixed."""
    return network.eval().requires_grad_(False)
