"""The messages of a step.

    u-shaped     client ── CodeMessage ──► server      vanilla    client ── CodeMessage (with labels) ──► server
                 client ◄─ OutputMessage ─ server                 client ◄─ CodeGradient ──────────────── server
                 client ── OutputGradient ─► server
                 client ◄─ CodeGradient ── server

Where codes are sent once, the client releases each code and then names samples:

    client ── Release ─► server      client ── Recall ────────► server
    client ◄─ Noted ──── server      client ◄─ OutputMessage ── server
                                     client ── OutputGradient ─► server
                                     client ◄─ Noted ────────── server

In a parallel round with shared heads, each owner adds its hidden part of the gradient of
head and tail, and gets the sum of all parts:

    client ── Share ─► server      client ◄─ Total ── server

Outside training (``is_training`` is false) the server answers a code with an OutputMessage
in both topologies and changes nothing of its own. It answers an EncryptedCode, which it
cannot read, with an EncryptedOutput, where its part of the model is linear. Tensors in a message belong to no
autograd graph: a graph never crosses the cut. They hold the numbers as the wire format
writes them, with scales among the side tensors; ``Wire`` writes and reads them.
"""  # noqa: E501

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lightsplit.codecs import Code

LOSS_BYTES = SAMPLES_BYTES = 8
NUMBER = torch.int32  # of a sample
NONCE_BYTES = 16  # of a share


@dataclass(frozen=True)
class CodeMessage:
    """Client to server: the code of a batch, with its labels if vanilla.

    Companions are tensors that cross without a gradient and as they are, such as the
    mask of a batch of sequences.
    """

    kind: ClassVar[str] = "code"
    counted_as: ClassVar[str] = "code"
    client: int
    step: int
    code: Code
    labels: Tensor | None = None
    is_training: bool = True
    companions: tuple[Tensor, ...] = ()

    @property
    def payload_bytes(self) -> int:
        """Bytes of the code and its companions; labels are counted separately."""
        return code_bytes(self.code) + sum(one.nbytes for one in self.companions)

    @property
    def label_bytes(self) -> int:
        """Bytes of the labels; 0 in the U-shaped topology."""
        return 0 if self.labels is None else self.labels.nbytes


@dataclass(frozen=True)
class OutputMessage:
    """Server to client: the backbone's output (vanilla evaluation: the logits)."""

    kind: ClassVar[str] = "output"
    counted_as: ClassVar[str] = "output"
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
    counted_as: ClassVar[str] = "output_gradient"
    is_training: ClassVar[bool] = True
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
        return code_bytes(self.written)


@dataclass(frozen=True)
class CodeGradient:
    """Server to client: the gradient at the code, with the loss in vanilla topology."""

    kind: ClassVar[str] = "code_gradient"
    counted_as: ClassVar[str] = "code_gradient"
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
        """Bytes of the gradient, and of the loss if there is one."""
        loss_bytes = 0 if self.loss is None else LOSS_BYTES
        return code_bytes(self.written) + loss_bytes


@dataclass(frozen=True)
class Release:
    """Client to server: codes of samples, which the server keeps.

    Attributes:
        first: the client's own number of the first sample; the others follow it.
        is_training: whether the samples are those of training, not of the test set.
    """

    kind: ClassVar[str] = "release"
    counted_as: ClassVar[str] = "code"
    client: int
    step: int
    first: int
    code: Code
    is_training: bool = True

    @property
    def payload_bytes(self) -> int:
        """Bytes of the codes."""
        return code_bytes(self.code)


@dataclass(frozen=True)
class Recall:
    """Client to server: the samples of a batch, whose codes the server has.

    Attributes:
        numbers: the client's own numbers of the samples, int32.
        is_training: whether they are samples of training, not of the test set.
    """

    kind: ClassVar[str] = "recall"
    counted_as: ClassVar[str] = "code"
    client: int
    step: int
    numbers: Tensor
    is_training: bool = True

    @property
    def payload_bytes(self) -> int:
        """Bytes of the numbers."""
        return self.numbers.nbytes


@dataclass(frozen=True)
class Noted:
    """Server to client: done; nothing is sent back."""

    kind: ClassVar[str] = "noted"
    counted_as: ClassVar[str] = "noted"
    payload_bytes: ClassVar[int] = 0
    client: int
    step: int


@dataclass(frozen=True)
class Share:
    """Client to server: its part of a sum, hidden under a pad.

    Attributes:
        numbers: int64, the part plus the pad modulo 2**64.
        nonces: uint8 of shape (1, 16), from which the holders of the key draw the pad.
    """

    kind: ClassVar[str] = "share"
    counted_as: ClassVar[str] = "hand_off"
    is_training: ClassVar[bool] = True
    client: int
    step: int
    numbers: Tensor
    nonces: Tensor

    @property
    def payload_bytes(self) -> int:
        """Bytes of the numbers and the nonce."""
        return self.numbers.nbytes + self.nonces.nbytes


@dataclass(frozen=True)
class Total:
    """Server to client: the sum of all parts, with the nonces of their pads.

    Attributes:
        samples: of all parts, as the server counted them in the owners' steps.
    """

    kind: ClassVar[str] = "total"
    counted_as: ClassVar[str] = "hand_off"
    client: int
    step: int
    samples: int
    numbers: Tensor
    nonces: Tensor

    @property
    def payload_bytes(self) -> int:
        """Bytes of the samples, the numbers and the nonces."""
        return SAMPLES_BYTES + self.numbers.nbytes + self.nonces.nbytes


@dataclass(frozen=True)
class EncryptedCode:
    """Client to server, outside training: a code that the server cannot read.

    Attributes:
        ciphertext: the encrypted code, with the public keys to compute with.
    """

    kind: ClassVar[str] = "encrypted_code"
    client: int
    step: int
    ciphertext: bytes


@dataclass(frozen=True)
class EncryptedOutput:
    """Server to client: an output that only the client can read."""

    kind: ClassVar[str] = "encrypted_output"
    client: int
    step: int
    ciphertext: bytes


Request = CodeMessage | OutputGradient | Release | Recall | Share
Reply = OutputMessage | CodeGradient | Noted | Total
Encrypted = EncryptedCode | EncryptedOutput


def code_bytes(code: Code) -> int:
    """Return the bytes of a code's values and side information."""
    return code.values.nbytes + sum(tensor.nbytes for tensor in code.side)


def detached(code: Code) -> Code:
    """Return the code without its graph, sharing its memory."""
    return Code(code.values.detach(), tuple(tensor.detach() for tensor in code.side))
