"""The state of several sides at one moment, and the way back to it bit for bit."""

from collections.abc import Mapping

from lightsplit.runtime import Side, State


def take(sides: Mapping[str, Side]) -> State:
    """Return copies of all weights, buffers and optimizer states."""
    return {
        f"{name}.{key}": tensor.clone()
        for name, side in sides.items()
        for key, tensor in side.state().items()
    }


def put_back(sides: Mapping[str, Side], state: State) -> None:
    """Restore the sides; ``state`` can be used again."""
    for name, side in sides.items():
        prefix = f"{name}."
        side.load(
            {
                key.removeprefix(prefix): tensor.clone()
                for key, tensor in state.items()
                if key.startswith(prefix)
            }
        )


def copied(state: State) -> State:
    """Return copies of the tensors of one side's state."""
    return {name: tensor.clone() for name, tensor in state.items()}
