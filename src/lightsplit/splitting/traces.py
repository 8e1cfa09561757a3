"""What one forward pass did: module calls, operations, and the values between them.

    inputs ─► op ─► value ─► op ─► value …       each op inside a call of a module

A value is the content of a tensor at one time: an operation in place makes a new one.
Positions order calls and operations in time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from lightsplit.splitting.arguments import Blank

Value = int
_PLAIN = (bool, int, float, str, type(None), torch.dtype)


@dataclass(frozen=True)
class Op:
    """One operation on tensors.

    Attributes:
        at: its position.
        name: of the function.
        call: index of the module call that it belongs to.
        reads: the values that it reads, without parameters and buffers.
        makes: the values that it makes.
        states: names of the parameters and saved buffers that it reads or changes.
        is_random: whether it draws random numbers.
        decides: whether Python, or the shape of the result, depends on the values read.
        plain: the arguments that are not tensors.
        overwrites: the old values of the tensors that it overwrote.
    """

    at: int
    name: str
    call: int
    reads: tuple[Value, ...]
    makes: tuple[Value, ...]
    states: tuple[str, ...]
    is_random: bool
    decides: bool
    plain: tuple[Any, ...] = ()
    overwrites: tuple[Value, ...] = ()


@dataclass
class Call:
    """One call of a module.

    Attributes:
        path: first name of the module.
        start, stop: positions.
        takes: values among its arguments, one for each tensor.
        taken: forms of these tensors.
        gives: values in its result, one for each tensor.
        result: its result with an empty tensor in the place of each tensor.
        forms: of these tensors.
        is_checkpointed: whether it runs under gradient checkpointing.
        plain: its arguments that are no tensors.
    """

    path: str
    start: float
    takes: tuple[Value, ...] = ()
    taken: tuple[Blank, ...] = ()
    is_checkpointed: bool = False
    plain: tuple[Any, ...] = ()
    stop: float = -1
    gives: tuple[Value, ...] = ()
    result: Any = None
    forms: tuple[Blank, ...] = ()


@dataclass
class Trace:
    """A forward pass.

    Attributes:
        is_training: the mode that the model was in.
        inputs: the values of the inputs by name.
        constants: values that no operation made: tensors that the code holds.
        outputs: the values in the model's output.
        kept: the values that objects in the output hold.
        states: all names of each parameter and saved buffer, by its first name.
    """

    is_training: bool
    calls: list[Call] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    inputs: dict[str, Value] = field(default_factory=dict)
    constants: set[Value] = field(default_factory=set)
    outputs: tuple[Value, ...] = ()
    kept: tuple[Value, ...] = ()
    states: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def makers(self) -> dict[Value, Op]:
        """The operation that made each value."""
        return {value: op for op in self.ops for value in op.makes}

    @cached_property
    def calls_of(self) -> dict[str, list[Call]]:
        """The calls of each module, by its first name."""
        found: dict[str, list[Call]] = {}
        for call in self.calls:
            found.setdefault(call.path, []).append(call)
        return found

    @property
    def mode(self) -> str:
        """The mode in words."""
        return "training" if self.is_training else "evaluation"

    def describe(self, value: Value, before: float) -> str:
        """Return a name for a value that a user recognises.

        It is the outermost module that had returned the value before that position.
        """
        for name, given in self.inputs.items():
            if given == value:
                return f"the input {name!r}"
        givers = [
            call for call in self.calls if value in call.gives and call.stop <= before
        ]
        if givers:
            giver = max(givers, key=lambda call: call.stop)
            if len(set(giver.gives)) == 1:
                return repr(giver.path)
            return f"tensor {giver.gives.index(value) + 1} of {giver.path!r}"
        op = self.makers[value]
        return f"the result of {op.name} in {self.place(op)}"

    def reader(self, value: Value, op: Op) -> str:
        """Return a name for what reads ``value`` with ``op``."""
        takers = [
            call
            for call in self.calls
            if value in call.takes and call.start < op.at <= call.stop and call.path
        ]
        if takers:
            return repr(min(takers, key=lambda call: call.start).path)
        return self.place(op)

    def place(self, op: Op) -> str:
        """Return the module whose own code runs ``op``."""
        path = self.calls[op.call].path
        return repr(path) if path else "the model itself"


def plain_in(nest: Any) -> Iterator[Any]:
    """Yield the plain values of a nesting: numbers, texts and None."""
    if isinstance(nest, Mapping):
        nest = list(nest.values())
    elif isinstance(nest, slice):
        nest = [nest.start, nest.stop, nest.step]
    if isinstance(nest, tuple | list):
        for each in nest:
            yield from plain_in(each)
    elif isinstance(nest, _PLAIN):
        yield nest
