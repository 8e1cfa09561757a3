"""What a message may be: how long, and of which dtype and shape.

    limits       bytes of any message, before a contract is agreed on
    expectation  what the contract and the codec allow, exactly

Both are asked while a message is still bytes, before a tensor is made of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch

from lightsplit.codecs.base import Layout, TensorSpec
from lightsplit.errors import CodecError, ConfigError, ProtocolError
from lightsplit.protocol.contract import Contract
from lightsplit.protocol.wire_schema import KINDS

LayoutOf = Callable[[int], Layout]
_Batches = dict[Layout, set[int]]

_STEP_KINDS = {kind.name for kind in KINDS.values() if kind.tensors}
_SIDE_KINDS = {kind.name for kind in KINDS.values() if kind.side}
_REMEMBERED = 1024  # claims
_HEAD_ROOM = 4096  # more than dtypes, shapes, numbers and lengths ever take


@dataclass(frozen=True)
class Limits:
    """The most bytes that a message may have.

    Attributes:
        step_bytes: of a message of a step, where no contract says it better.
        side_bytes: of one that may bring a sealed side.
        control_bytes: of any other.
    """

    step_bytes: int = 256 * 2**20
    side_bytes: int = 2**30
    control_bytes: int = 2**16

    def limit_bytes(self, kind: str) -> int:
        """Return the most bytes of a message of ``kind``."""
        if kind in _STEP_KINDS:
            return self.step_bytes
        return self.side_bytes if kind in _SIDE_KINDS else self.control_bytes


class Claim(NamedTuple):
    """What the tensors of a received message say they are."""

    values: TensorSpec
    side: tuple[TensorSpec, ...] = ()
    labels: TensorSpec | None = None
    is_training: bool = True
    has_loss: bool = False


class Expectation:
    """What a contract allows in the four messages of a step.

    Args:
        contract: the terms that both sides agreed on.
        layout: of a batch of a given size at the front cut: ``codec.layout``.
        output: the same at the back cut; without it the contract's output shape in
            float32, and in the vanilla topology, whose logits the contract does not
            describe, any float32.
        code_gradient, output_gradient: the same of what comes back; without them the
            values alone.
        evaluation_batch: the largest batch outside training; without it that of a step.
        label: of one sample.
    """

    def __init__(  # noqa: PLR0913
        self,
        contract: Contract,
        layout: LayoutOf,
        *,
        output: LayoutOf | None = None,
        code_gradient: LayoutOf | None = None,
        output_gradient: LayoutOf | None = None,
        evaluation_batch: int | None = None,
        label: TensorSpec = TensorSpec((), torch.int64),  # noqa: B008  frozen
    ) -> None:
        largest = max(contract.batch_size, evaluation_batch or 0)
        if largest < 1:
            raise ConfigError(f"batch size must be at least 1, got {largest}")
        self._bounds = {True: contract.batch_size, False: largest}
        self._is_vanilla = contract.topology == "vanilla"
        self._label = label
        self._codes = _batches(layout, largest)
        self._is_any_output = self._is_vanilla and output is None
        self._outputs = _batches(output or _plain(contract.output_shape), largest)
        self._code_gradients = _returned(code_gradient, self._codes)
        self._output_gradients = _returned(output_gradient, self._outputs)
        self._bytes = self._most_bytes(largest)
        # Most messages of a run claim the same: those that were legal are remembered.
        self.check = lru_cache(_REMEMBERED)(self._check)
        self._checks = {
            "code": self._check_code,
            "output": self._check_output,
            "output_gradient": self._check_output_gradient,
            "code_gradient": self._check_code_gradient,
        }

    def limit_bytes(self, kind: str) -> int | None:
        """Return the most bytes of a message of ``kind``; None where it is not said."""
        return self._bytes.get(kind)

    def _check(self, kind: str, claim: Claim) -> None:
        """Raise unless a message of a step may be of the shapes it claims."""
        self._checks[kind](claim)

    def _most_bytes(self, largest: int) -> dict[str, int]:
        labels = self._label.bytes * largest
        code = max(layout.code_bytes for layout in self._codes)
        code_gradient = max(layout.code_bytes for layout in self._code_gradients)
        most = {"code": code + labels, "code_gradient": code_gradient}
        if not self._is_any_output:
            most["output"] = max(layout.code_bytes for layout in self._outputs)
        most["output_gradient"] = max(
            0 if self._is_vanilla else layout.code_bytes
            for layout in self._output_gradients
        )
        return {kind: count + _HEAD_ROOM for kind, count in most.items()}

    def _check_code(self, claim: Claim) -> None:
        got = Layout(claim.values, claim.side)
        sizes = self._sizes("code", got, self._codes, claim.is_training)
        if self._is_vanilla and claim.is_training:
            self._check_labels(claim.labels, sizes)
        elif claim.labels is not None:
            raise _wrong("code", "no labels here", str(claim.labels))

    def _check_labels(self, labels: TensorSpec | None, sizes: list[int]) -> None:
        legal = [
            TensorSpec((size, *self._label.shape), self._label.dtype) for size in sizes
        ]
        if labels not in legal:
            got = "none" if labels is None else str(labels)
            raise _wrong("code", f"labels of {legal[0]}", got)

    def _check_output(self, claim: Claim) -> None:
        if not self._is_any_output:
            got = Layout(claim.values, claim.side)
            self._sizes("output", got, self._outputs, False)
        elif claim.values.dtype != torch.float32 or claim.side:
            raise _wrong("output", "one tensor of float32", str(claim.values))

    def _check_output_gradient(self, claim: Claim) -> None:
        if self._is_vanilla:
            raise ProtocolError("the vanilla topology has no output gradient")
        got = Layout(claim.values, claim.side)
        self._sizes("output_gradient", got, self._output_gradients, True)

    def _check_code_gradient(self, claim: Claim) -> None:
        if claim.has_loss != self._is_vanilla:
            expected = "a loss" if self._is_vanilla else "no loss"
            raise ProtocolError(f"code_gradient: expected {expected}", code="malformed")
        got = Layout(claim.values, claim.side)
        self._sizes("code_gradient", got, self._code_gradients, True)

    def _sizes(
        self, kind: str, got: Layout, known: _Batches, is_training: bool
    ) -> list[int]:
        """Return the batch sizes that give this layout, or refuse it."""
        bound = self._bounds[is_training]
        sizes = [size for size in known.get(got, ()) if size <= bound]
        if not sizes:
            first = next(iter(known))
            raise _wrong(kind, f"a batch of 1 to {bound}, one is {first}", str(got))
        return sizes


def _batches(layout: LayoutOf, largest: int) -> _Batches:
    """Return every legal layout with the batch sizes that give it."""
    found: _Batches = {}
    for size in range(1, largest + 1):
        try:
            found.setdefault(layout(size), set()).add(size)
        except CodecError:  # a codec may need, say, an even number of samples
            continue
    if not found:
        raise ConfigError(f"the codec takes no batch of 1 to {largest} samples")
    return found


def _returned(layout: LayoutOf | None, known: _Batches) -> _Batches:
    """Return the layouts of gradients: nothing comes back for side information."""
    found: _Batches = {}
    for plain, sizes in known.items():
        for size in sizes:
            back = Layout(plain.values) if layout is None else layout(size)
            found.setdefault(back, set()).add(size)
    return found


def _plain(shape: tuple[int, ...]) -> LayoutOf:
    return lambda size: Layout(TensorSpec((size, *shape)))


def _wrong(kind: str, expected: str, got: str) -> ProtocolError:
    return ProtocolError(f"{kind}: expected {expected}; got {got}", code="wrong-shape")
