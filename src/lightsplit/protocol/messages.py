"""The messages of a step.

    u-shaped     client ── CodeMessage ──► server      vanilla    client ── CodeMessage (with labels) ──► server
                 client ◄─ OutputMessage ─ server                 client ◄─ CodeGradient ──────────────── server
                 client ── OutputGradient ─► server
                 client ◄─ CodeGradient ── server

A forward pass outside training (``is_training`` false) is answered by an OutputMessage in
both topologies and leaves no trace at the server. Tensors in a message belong to no
autograd graph: a graph never crosses the cut. They are what travels: numbers as the wire
format writes them (lightsplit.formats reads them), scales among the side tensors.
"""  # noqa: E501

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lightsplit.codecs import Code

LOSS_BYTES = 8


@dataclass(frozen=True)
class CodeMessage:
    """Client to server: the code of a batch, with its labels if vanilla."""

    kind: ClassVar[str] = "code"
    client: int
    step: int
    code: Code
    labels: Tensor | None = None
    is_training: bool = True

    @property
    def payload_bytes(self) -> int:
        """Bytes of the code; labels are counted by themselves."""
        return code_bytes(self.code)

    @property
    def label_bytes(self) -> int:
        """Bytes of the labels, none in the U-shaped topology."""
        return 0 if self.labels is None else self.labels.nbytes


@dataclass(frozen=True)
class OutputMessage:
    """Server to client: the backbone's output (vanilla evaluation: the logits)."""

    kind: ClassVar[str] = "output"
    client: int
    step: int
    output: Code

    @property
    def payload_bytes(self) -> int:
        """Bytes of the output."""
        return code_bytes(self.output)


@dataclass(frozen=True)
class OutputGradient:
    """Client to server: the loss's gradient at the output."""

    kind: ClassVar[str] = "output_gradient"
    client: int
    step: int
    gradient: Tensor
    side: tuple[Tensor, ...] = ()

    @property
    def written(self) -> Code:
        """The gradient as it travels."""
        return Code(self.gradient, self.side)

    @property
    def payload_bytes(self) -> int:
        """Bytes of the gradient."""
        return self.gradient.nbytes + side_bytes(self.side)


@dataclass(frozen=True)
class CodeGradient:
    """Server to client: the gradient at the code, with the loss in vanilla topology."""

    kind: ClassVar[str] = "code_gradient"
    client: int
    step: int
    gradient: Tensor
    loss: float | None = None
    side: tuple[Tensor, ...] = ()

    @property
    def written(self) -> Code:
        """The gradient as it travels."""
        return Code(self.gradient, self.side)

    @property
    def payload_bytes(self) -> int:
        """Bytes of the gradient, and of the loss where it is sent."""
        whole = self.gradient.nbytes + side_bytes(self.side)
        return whole if self.loss is None else whole + LOSS_BYTES


Request = CodeMessage | OutputGradient
Reply = OutputMessage | CodeGradient


def code_bytes(code: Code) -> int:
    """Return the bytes of a code's values and side information."""
    return code.values.nbytes + side_bytes(code.side)


def side_bytes(side: tuple[Tensor, ...]) -> int:
    """Return the bytes of side information, which most codes have none of."""
    return sum(tensor.nbytes for tensor in side) if side else 0


def detached(code: Code) -> Code:
    """Return the code cut off from its graph, sharing its memory."""
    return Code(code.values.detach(), tuple(tensor.detach() for tensor in code.side))
