"""How long a message may be, and which dtypes and shapes its tensors may have.

    limits       bytes of any message, before a contract is agreed on
    expectation  exactly what the contract and the codec allow

The reader asks both while a message is still bytes, before it makes a tensor.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from lightsplit.codecs.base import Layout, TensorSpec
from lightsplit.errors import ConfigError, ProtocolError
from lightsplit.protocol.companions import ROWS, Companion
from lightsplit.protocol.contract import Contract
from lightsplit.protocol.frames.legal import ByRows, Enumerated, LayoutOf, Legal
from lightsplit.protocol.frames.schema import KINDS
from lightsplit.protocol.messages import NONCE_BYTES, NUMBER

_STEP_KINDS = {kind.name for kind in KINDS.values() if kind.tensors}
CIPHER_KINDS = {"encrypted_code", "encrypted_output"}
_SIDE_KINDS = {kind.name for kind in KINDS.values() if kind.side is not None}
_HEAD_ROOM = 4096  # more than dtypes, shapes, numbers and lengths ever take


@dataclass(frozen=True)
class Limits:
    """The most bytes that a message may have.

    Attributes:
        step_bytes: for a message of a step, unless a contract says it exactly.
        side_bytes: for a message that may carry a sealed side.
        control_bytes: for any other message.
        cipher_bytes: for an encrypted code or output.
    """

    step_bytes: int = 256 * 2**20
    side_bytes: int = 2**30
    control_bytes: int = 2**16
    cipher_bytes: int = 2**16

    @classmethod
    def of(cls, contract: Contract) -> "Limits":
        """Return the limits of a run; a side is no longer than its contract says."""
        plain = cls(cipher_bytes=contract.cipher_bytes or 2**16)
        if not contract.shares_side:
            return replace(plain, side_bytes=plain.control_bytes)
        most = contract.side_bytes or plain.side_bytes
        return replace(plain, side_bytes=most + _HEAD_ROOM)

    def limit_bytes(self, kind: str) -> int:
        """Return the most bytes that a message of ``kind`` may have."""
        if kind in _STEP_KINDS:
            return self.step_bytes
        if kind in CIPHER_KINDS:
            return self.cipher_bytes
        return self.side_bytes if kind in _SIDE_KINDS else self.control_bytes


class Claim(NamedTuple):
    """What a received message says that its tensors are."""

    values: TensorSpec
    side: tuple[TensorSpec, ...] = ()
    companions: tuple[TensorSpec, ...] = ()
    labels: TensorSpec | None = None
    nonces: TensorSpec | None = None
    is_training: bool = True
    has_loss: bool = False

    @property
    def layout(self) -> Layout:
        """Values and side tensors together."""
        return Layout(self.values, self.side)


class Expectation:
    """What a contract allows in the four messages of a step.

    Args:
        contract: the terms that both sides agreed on.
        layout: gives the layout of a code for a batch size: ``codec.layout``.
        output: the same for outputs. Without it they have the contract's output shape
            in float32; in the vanilla topology, whose logits the contract does not
            describe, they may be any float32 tensor.
        code_gradient, output_gradient: the same for gradients. Without them a gradient
            has the layout of the values alone.
        evaluation_batch: the largest batch outside training; by default that of a step.
        label: the label of one sample.

    Attributes:
        most_bytes: the most bytes of a message, by kind; a kind that the contract does
            not describe is missing.
        limits: of the messages that are not described.
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
        self.limits = Limits.of(contract)
        self._training_batch = contract.batch_size
        self._largest_batch = max(contract.batch_size, evaluation_batch or 0)
        if self._largest_batch < 1:
            raise ConfigError(
                f"batch size must be at least 1, got {self._largest_batch}"
            )
        self._sends_once = contract.sends_once
        self._averages = contract.averages_side
        self._share = TensorSpec((contract.share_numbers,), torch.int64)
        self._clients = contract.clients
        self._is_vanilla = contract.topology == "vanilla"
        self._is_any_output = self._is_vanilla and output is None
        self._label = label
        self._tokens = contract.most_tokens if contract.rows == "token" else 1
        self._output_tokens = self._tokens if contract.output_rows == "token" else 1
        self._companions = tuple(map(Companion.parse, contract.companions))
        output = output or _plain(contract.output_shape)
        self._codes = self._legal(layout, self._tokens)
        self._outputs = self._legal(output, self._output_tokens)
        self._code_gradients = self._legal(
            _gradient(code_gradient, layout), self._tokens
        )
        self._output_gradients = self._legal(
            _gradient(output_gradient, output), self._output_tokens
        )
        self.most_bytes = self._most_bytes()

    def check(self, kind: str, claim: Claim) -> None:
        """Raise unless a message of a step may have the tensors that it claims."""
        match kind:
            case "code":
                self._check_code(claim)
            case "output":
                self._check_output(claim)
            case "output_gradient":
                self._check_output_gradient(claim)
            case "code_gradient":
                self._check_code_gradient(claim)
            case "release" | "recall":
                self._check_once(kind, claim)
            case "share":
                self._check_sum(kind, claim, most_parts=1)
            case "total":
                self._check_sum(kind, claim, most_parts=self._clients)

    def _legal(self, layout: LayoutOf, tokens: int) -> Legal:
        """Return the legal layouts of messages with up to ``tokens`` rows a sample."""
        if tokens == 1:
            return Enumerated(layout, self._largest_batch)
        return ByRows(layout, self._largest_batch * tokens)

    def _most_bytes(self) -> dict[str, int]:
        labels = self._label.bytes * self._largest_batch
        sizes = {"batch": self._largest_batch, "tokens": self._tokens}
        companions = sum(one.spec(sizes).bytes for one in self._companions)
        most = {
            "code": self._codes.most_bytes + labels + companions,
            "output_gradient": self._output_gradients.most_bytes,
            "code_gradient": self._code_gradients.most_bytes,
            "release": self._codes.most_bytes,
            "recall": NUMBER.itemsize * self._largest_batch,
            "share": self._share.bytes + NONCE_BYTES,
            "total": self._share.bytes + NONCE_BYTES * self._clients,
        }
        if self._is_vanilla:
            most["output_gradient"] = 0
        if not self._is_any_output:
            most["output"] = self._outputs.most_bytes
        return {kind: count + _HEAD_ROOM for kind, count in most.items()}

    def _check_code(self, claim: Claim) -> None:
        bound = self._training_batch if claim.is_training else self._largest_batch
        sizes = self._check_rows(claim, bound)
        if self._is_vanilla and claim.is_training:
            self._check_labels(claim.labels, sizes)
        elif claim.labels is not None:
            raise _wrong("code", "no labels here", str(claim.labels))

    def _check_once(self, kind: str, claim: Claim) -> None:
        if not self._sends_once:
            raise ProtocolError(f"{kind}: this run sends a code in every step")
        bound = self._training_batch if claim.is_training else self._largest_batch
        if kind == "release":
            _legal_sizes(kind, claim.layout, self._codes, bound)
            return
        sizes = claim.values.shape
        if claim.values.dtype != NUMBER or len(sizes) != 1 or sizes[0] > bound:
            numbers = f"1 to {bound} numbers in int32"
            raise _wrong(kind, numbers, str(claim.values))

    def _check_sum(self, kind: str, claim: Claim, *, most_parts: int) -> None:
        """Refuse parts of a sum where there is none, or of another form."""
        if not self._averages:
            raise ProtocolError(f"{kind}: owners add nothing up in this run")
        if claim.values != self._share:
            raise _wrong(kind, str(self._share), str(claim.values))
        shape = () if claim.nonces is None else claim.nonces.shape
        is_legal = len(shape) == 2 and shape[0] <= most_parts
        if not is_legal or claim.nonces != TensorSpec(
            (shape[0], NONCE_BYTES), torch.uint8
        ):
            expected = f"1 to {most_parts} nonces of {NONCE_BYTES} bytes"
            raise _wrong(kind, expected, str(claim.nonces))

    def _check_rows(self, claim: Claim, bound: int) -> list[int]:
        """Return how many samples a code may be of; refuse what does not fit."""
        if self._tokens == 1:
            sizes = _legal_sizes("code", claim.layout, self._codes, bound)
            self._check_companions(claim, {"batch": sizes[0]})
            return sizes
        batch, tokens = self._grid(claim, bound)
        _legal_sizes("code", claim.layout, self._codes, batch * tokens)
        self._check_companions(claim, {"batch": batch, "tokens": tokens})
        return [batch]

    def _grid(self, claim: Claim, bound: int) -> tuple[int, int]:
        """Return how many sequences a code is of, and how long the longest is."""
        shape = claim.companions[0].shape if claim.companions else ()
        if len(shape) != 2 or not (shape[0] <= bound and shape[1] <= self._tokens):
            raise _wrong(
                "code",
                f"up to {bound} sequences of up to {self._tokens} tokens",
                f"{ROWS} of {shape}",
            )
        return shape[0], shape[1]

    def _check_companions(self, claim: Claim, sizes: dict[str, int]) -> None:
        expected = tuple(one.spec(sizes) for one in self._companions)
        if claim.companions != expected:
            names = ", ".join(map(str, self._companions)) or "no companions"
            got = ", ".join(map(str, claim.companions)) or "none"
            raise _wrong("code", names, got)

    def _check_labels(self, labels: TensorSpec | None, sizes: list[int]) -> None:
        legal = [
            TensorSpec((size, *self._label.shape), self._label.dtype) for size in sizes
        ]
        if labels not in legal:
            got = "none" if labels is None else str(labels)
            raise _wrong("code", f"labels of {legal[0]}", got)

    def _check_output(self, claim: Claim) -> None:
        if not self._is_any_output:
            most = self._largest_batch * self._output_tokens
            _legal_sizes("output", claim.layout, self._outputs, most)
        elif claim.values.dtype != torch.float32 or claim.side:
            raise _wrong("output", "one tensor of float32", str(claim.layout))

    def _check_output_gradient(self, claim: Claim) -> None:
        if self._is_vanilla:
            raise ProtocolError("the vanilla topology has no output gradient")
        _legal_sizes(
            "output_gradient",
            claim.layout,
            self._output_gradients,
            self._training_batch * self._output_tokens,
        )

    def _check_code_gradient(self, claim: Claim) -> None:
        if claim.has_loss != self._is_vanilla:
            expected = "a loss" if self._is_vanilla else "no loss"
            raise ProtocolError(f"code_gradient: expected {expected}", code="malformed")
        most = self._training_batch * self._tokens
        _legal_sizes("code_gradient", claim.layout, self._code_gradients, most)


def _gradient(layout: LayoutOf | None, forward: LayoutOf) -> LayoutOf:
    """Return the layouts of gradients; by default those of the values alone."""

    def back(size: int) -> Layout:
        there = forward(size)  # raises for a batch that the codec does not take
        return Layout(there.values) if layout is None else layout(size)

    return back


def _legal_sizes(kind: str, got: Layout, known: Legal, bound: int) -> list[int]:
    """Return the numbers of rows up to ``bound`` that give this layout, or refuse."""
    sizes = known.sizes(got, bound)
    if not sizes:
        raise _wrong(kind, f"a batch of 1 to {bound}, one is {known.first}", str(got))
    return sizes


def _plain(shape: tuple[int, ...]) -> LayoutOf:
    return lambda size: Layout(TensorSpec((size, *shape)))


def _wrong(kind: str, expected: str, got: str) -> ProtocolError:
    return ProtocolError(f"{kind}: expected {expected}; got {got}", code="wrong-shape")
