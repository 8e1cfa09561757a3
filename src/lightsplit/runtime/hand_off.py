"""Hand-offs: how a side is written on its way to the next client.

    fp32   unchanged
    bf16   every float in half the bytes, rounded stochastically
    int8   weights w as their change since the start, in int8 with a scale for each row:
           q = Q(w − w₀ + e), and e ← (w − w₀ + e) − q stays with the client; all other
           floats as with bf16

Every client of a run has the same initial weights w₀, so the change is enough to
restore the weights, and untrained weights do not travel at all. The client keeps the
part that rounding removes from a hand-off (e, the residual) and adds it to its next
hand-off.

The optimizer's state either travels with the weights or stays; if it stays, every
client keeps the averages of its own steps and continues with them in its next turn.
Slow averages that travel need stochastic rounding: a change of 0.1 % a step is below
half a unit of bf16, and rounding to the nearest would lose it at every hand-off. In
int8 they and running variances would reach 0. Single numbers, such as Adam's count of
steps, and integers are never rounded.

Where codes are sent once, head and encoder are frozen first (``FROZEN``). After
releasing its codes, a client keeps them, with their optimizer's state; the hand-offs of
the last phase carry only the tail, which still changes.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from lightsplit.errors import ConfigError, RunError
from lightsplit.formats import FORMATS, ROUNDINGS, Stream
from lightsplit.protocol.phases import RELEASE, TRAIN
from lightsplit.registry import unknown_name
from lightsplit.results import tensors
from lightsplit.runtime.optimizer_state import is_optimizer_state, slot_of
from lightsplit.runtime.side import ClientSide, State

HAND_OFFS = ("fp32", "bf16", "int8")
FROZEN = ("head", "encoder", "local_tail", "objectives")  # once codes are released
_SCALES = "scales/"  # no module's name holds a slash


class Written(NamedTuple):
    """A side on its way: the tensors that travel, and those that stay behind."""

    travels: State
    stays: State


class HandOff:
    """Writes and reads the sides of one run.

    Args:
        side: before the first step.
        name: one of HAND_OFFS.
        optimizer_stays: whether every client keeps its own optimizer's state.
        seed: of the run.
        start: names the secret from which the initial weights were drawn.
        freezes: whether codes are sent once, and the modules that make them frozen.
    """

    def __init__(
        self,
        side: ClientSide,
        name: str = "fp32",
        *,
        optimizer_stays: bool = False,
        seed: int = 0,
        start: str = "",
        freezes: bool = False,
    ) -> None:
        if name not in HAND_OFFS:
            raise ConfigError(unknown_name("hand-off", name, list(HAND_OFFS)))
        self.name = name
        self.optimizer_stays = optimizer_stays
        self.seed = seed
        self._start_name = start
        weights = dict(side.modules.named_parameters())
        self._fixed = _copies({k: w for k, w in weights.items() if not w.requires_grad})
        self._start: State = {}
        if name == "int8":
            self._start = _copies(
                {k: w for k, w in weights.items() if w.requires_grad and w.ndim}
            )
        self.freezes = freezes
        self._trained = [name for name, w in weights.items() if w.requires_grad]
        self._bytes: dict[tuple[int, str], int] = {}

    @property
    def is_whole(self) -> bool:
        """Return whether the next client gets the very state, bit for bit."""
        parts = (self.optimizer_stays, self.freezes, self._fixed)
        return self.name == "fp32" and not any(parts)

    @property
    def keeps_state(self) -> bool:
        """Return whether a part of the side stays with the client."""
        return self.name == "int8" or self.optimizer_stays or self.freezes

    def bound_to(self, digest: str) -> str:
        """Return the terms that a hand-off is sealed for, from the contract's digest.

        A change of the weights is worthless, and looks valid, to a client with other
        first weights: there the seal must not open.
        """
        if not (self._start or self._fixed) or not self._start_name:
            return digest
        return f"{digest} with first weights {self._start_name}"

    def write(
        self, state: State, kept: State, *, client: int, step: int, phase: str = TRAIN
    ) -> Written:
        """Return the written state, and the part that stays with the client.

        Args:
            state: of the side.
            kept: the part that stayed at this client's last hand-off.
            client: the client that hands the side on; with its step it seeds the
                rounding.
            step: the number of steps that the client has done.
            phase: of the run in which the side is handed on.
        """
        if self.is_whole:
            return Written(state, {})
        stream = Stream(self.seed, client, step, "hand_off")
        rounding = ROUNDINGS.create("stochastic", stream=stream)
        travels: State = {}
        stays = self.frozen(state) if phase in (RELEASE, TRAIN) else {}
        left = {*self._fixed, *(stays if phase == TRAIN else ())}
        moving = {name: one for name, one in state.items() if name not in left}
        for name, tensor in sorted(moving.items()):  # the order of the random numbers
            if name in self._start:
                change = tensor - self._start[name] + kept.get(name, 0)
                travels[name], travels[_SCALES + name], stays[name] = _quantised(change)
            elif self.optimizer_stays and is_optimizer_state(name):
                stays[name] = tensor.detach().clone()
            elif self.name != "fp32" and tensor.dtype == torch.float32 and tensor.ndim:
                (travels[name],) = FORMATS.create("bf16").write(tensor, rounding)
            else:
                travels[name] = tensor
        return Written(travels, stays)

    def read(self, written: State, kept: State | None = None) -> State:
        """Return the state that was written, up to rounding.

        Args:
            written: the tensors that travelled.
            kept: the part that stayed with the reader at its own last hand-off.
        """
        if self.is_whole:
            return written
        arrived = {
            name: self._read(name, tensor, written)
            for name, tensor in written.items()
            if not name.startswith(_SCALES)
        }
        stayed = {k: v for k, v in (kept or {}).items() if k not in arrived}
        if self.freezes and not any(map(self._is_frozen, [*arrived, *stayed])):
            raise RunError(
                "the head is frozen and stays with the clients, and this one does not "
                "have it: give the folder of its state (--state)"
            )
        return {**self._fixed, **_copies(stayed), **arrived}

    def frozen(self, state: State) -> State:
        """Return a copy of the part of a state that no longer changes, if any."""
        return _copies({k: v for k, v in state.items() if self._is_frozen(k)})

    def _is_frozen(self, name: str) -> bool:
        if not self.freezes:
            return False
        slot = slot_of(name)
        own = name if slot is None else self._trained[slot]
        return own.startswith(tuple(f"{part}." for part in FROZEN))

    def own_optimizer(self, kept: State) -> State:
        """Return a copy of the optimizer's state among the tensors that stayed."""
        return _copies({k: v for k, v in kept.items() if is_optimizer_state(k)})

    def size_bytes(self, side: ClientSide, phase: str = TRAIN) -> int:
        """Return the bytes of a hand-off of ``side`` in a phase, as safetensors.

        It grows once, when the optimizer creates its state at the first step.
        """
        filled = 0 if side.optimizer is None else len(side.optimizer.state)
        if (filled, phase) not in self._bytes:
            written = self.write(side.state(), {}, client=0, step=0, phase=phase)
            self._bytes[filled, phase] = len(tensors.to_bytes(written.travels))
        return self._bytes[filled, phase]

    def _read(self, name: str, tensor: Tensor, written: State) -> Tensor:
        if name not in self._start:
            return tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        if _SCALES + name not in written:
            raise RunError(f"the hand-off has no scales of {name!r}")
        change = _restored(tensor, written[_SCALES + name])
        return self._start[name] + change.to(self._start[name].device)


def _copies(state: "State | dict[str, nn.Parameter]") -> State:
    return {name: tensor.detach().clone() for name, tensor in state.items()}


def _quantised(change: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return whole numbers, scales, and the difference to ``change``."""
    numbers, scales = FORMATS.create("int8").write(_rows(change), _NEAREST)
    numbers = numbers.reshape(change.shape)
    return numbers, scales, change - _restored(numbers, scales)


def _restored(numbers: Tensor, scales: Tensor) -> Tensor:
    rows = _rows(numbers)
    change = FORMATS.create("int8").read((rows, scales), tuple(rows.shape), _NEAREST)
    return change.reshape(numbers.shape)


def _rows(tensor: Tensor) -> Tensor:
    """Return a tensor with a row per scale; a vector, such as a bias, is one row."""
    return tensor.unsqueeze(0) if tensor.ndim == 1 else tensor


_NEAREST = ROUNDINGS.create("nearest", stream=Stream(0))
