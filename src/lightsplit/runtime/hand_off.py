"""How a side is written on its way to the next client.

    fp32   as it is
    bf16   every float in half the bytes, rounded stochastically
    int8   weights w as their change since the start, in int8 with a scale for each row:
           q = Q(w − w₀ + e), and e ← (w − w₀ + e) − q stays with the client; all other
           floats as with bf16

Every client draws the first weights w₀ from the run's seed, so a change is all that is
needed to tell the weights. What a hand-off rounds away is not lost: the client keeps it
(e, the residual) and adds it when the side leaves it the next time.

The optimizer's slow averages need stochastic rounding: a change of 0.1 % a step is
below half a unit of bf16 and would be rounded away at every hand-off. In int8 they, and
running variances, would reach 0. Single numbers, such as Adam's count of steps, and
integers are never rounded.
"""

import torch
from torch import Tensor

from lightsplit.errors import ConfigError, RunError
from lightsplit.formats import FORMATS, ROUNDINGS, Stream
from lightsplit.registry import unknown_name
from lightsplit.results import tensors
from lightsplit.runtime.side import ClientSide, State

HAND_OFFS = ("fp32", "bf16", "int8")
_SCALES = "scales/"  # no module's name holds a slash


class HandOff:
    """Writes and reads the sides of one run.

    Args:
        side: as it is before the first step.
        name: one of HAND_OFFS.
        seed: of the run.
    """

    def __init__(self, side: ClientSide, name: str = "fp32", *, seed: int = 0) -> None:
        if name not in HAND_OFFS:
            raise ConfigError(unknown_name("hand-off", name, list(HAND_OFFS)))
        self.name = name
        self.seed = seed
        self._start: State = {}
        if self.keeps_residual:
            self._start = {
                weight: tensor.detach().clone()
                for weight, tensor in side.modules.named_parameters()
                if tensor.ndim > 1
            }
        self._bytes: dict[int, int] = {}

    @property
    def is_exact(self) -> bool:
        """Say whether the next client gets the very numbers."""
        return self.name == "fp32"

    @property
    def keeps_residual(self) -> bool:
        """Say whether something stays with the client that it needs the next time."""
        return self.name == "int8"

    def write(
        self, state: State, residual: State, *, client: int, step: int
    ) -> tuple[State, State]:
        """Return what travels of ``state``, and what stays with the client."""
        if self.is_exact:
            return state, {}
        stream = Stream(self.seed, client, step, "hand_off")
        rounding = ROUNDINGS.create("stochastic", stream=stream)
        written: State = {}
        left: State = {}
        for name, tensor in sorted(state.items()):  # the order of the random numbers
            if name in self._start:
                change = tensor - self._start[name] + residual.get(name, 0)
                written[name], written[_SCALES + name], left[name] = _quantised(change)
            elif tensor.dtype == torch.float32 and tensor.ndim:
                (written[name],) = FORMATS.create("bf16").write(tensor, rounding)
            else:
                written[name] = tensor
        return written, left

    def read(self, written: State) -> State:
        """Return the state that was written, up to rounding."""
        if self.is_exact:
            return written
        return {
            name: self._read(name, tensor, written)
            for name, tensor in written.items()
            if not name.startswith(_SCALES)
        }

    def size_bytes(self, side: ClientSide) -> int:
        """Return how long a hand-off of ``side`` is as safetensors.

        It grows once, when the optimizer makes its slots at the first step.
        """
        filled = 0 if side.optimizer is None else len(side.optimizer.state)
        if filled not in self._bytes:
            written, _ = self.write(side.state(), {}, client=0, step=0)
            self._bytes[filled] = len(tensors.to_bytes(written))
        return self._bytes[filled]

    def _read(self, name: str, tensor: Tensor, written: State) -> Tensor:
        if name not in self._start:
            return tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        if _SCALES + name not in written:
            raise RunError(f"the hand-off has no scales of {name!r}")
        change = _restored(tensor, written[_SCALES + name])
        return self._start[name] + change.to(self._start[name].device)


def _quantised(change: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return whole numbers, scales, and what they leave out."""
    numbers, scales = FORMATS.create("int8").write(change, _NEAREST)
    return numbers, scales, change - _restored(numbers, scales)


def _restored(numbers: Tensor, scales: Tensor) -> Tensor:
    shape = tuple(numbers.shape)
    return FORMATS.create("int8").read((numbers, scales), shape, _NEAREST)


_NEAREST = ROUNDINGS.create("nearest", stream=Stream(0))
