"""Predictions on codes that the server cannot read: CKKS, by TenSEAL.

    client   code ── encrypt ──► [server: W · code + b] ──► decrypt ── output

One ciphertext holds one value of the code for up to 4,096 samples, so nothing is
rotated and the server needs public keys alone. It multiplies with numbers of its own
once, which is all the depth that there is: its part of the model must be linear, from
the code to the output. A ReLU, or a step of training, would need products of
ciphertexts.

The client's secret key never leaves it. The server learns how many values and samples
there are. CKKS is approximate; with these parameters outputs of size 1 are right to
about 1e-6. Whoever shows decrypted outputs to the server gives noise away that tells
about the secret key: outputs stay with the client, as everything does in the U-shape.
"""

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lightsplit.codecs import Code
from lightsplit.errors import CodecError, ConfigError, ProtocolError
from lightsplit.extras import require
from lightsplit.protocol import (
    CodeMessage,
    EncryptedCode,
    EncryptedOutput,
    OutputMessage,
)
from lightsplit.protocol.frames import frame_bytes

DEGREE = 8192  # of the polynomials; 128 bits of security with the moduli below
MODULI_BITS = (60, 40, 60)
SCALE_BITS = 40
MOST_SAMPLES = DEGREE // 2
_VALUE_BYTES = 2 * (len(MODULI_BITS) - 1) * DEGREE * 8 + 1024  # one ciphertext
_KEY_BYTES = 4 * 2**20
_LENGTH = struct.Struct("<Q")
_TOLERANCE = 1e-3  # of the outputs' spread
_PURPOSE = "encrypted prediction"


def cipher_bytes(code_size: int, output_size: int) -> int:
    """Return the most bytes of an encrypted code or output."""
    return max(code_size, output_size) * _VALUE_BYTES + _KEY_BYTES


class LinearMap(NamedTuple):
    """A matrix (k, outputs) and what is added to its product."""

    matrix: Tensor
    bias: Tensor
    shape: tuple[int, ...]


def linear_map(function: Callable[[Tensor], Tensor], size: int) -> LinearMap:
    """Return the map that ``function`` of rows (B, size) is; refuse one that is none.

    Example:
        >>> linear_map(lambda rows: 2 * rows + 1, 2).matrix
        tensor([[2., 0.],
                [0., 2.]])
    """
    generator = torch.Generator().manual_seed(0)
    one, other = torch.randn(2, 8, size, generator=generator)
    with torch.no_grad():
        zero = function(torch.zeros(1, size))
        together = function(one + other) + zero
        apart = function(one) + function(other)
        limit = _TOLERANCE * float((apart - 2 * zero).std()) + 1e-6
        if float((together - apart).abs().max()) > limit:
            raise ConfigError(
                "encrypted prediction needs a server whose part is linear from the "
                "code to the output, because numbers that are encrypted can be added "
                "and multiplied by known ones alone; this one is not linear"
            )
        matrix = (function(torch.eye(size)) - zero).flatten(1)
    return LinearMap(matrix, zero.flatten(), tuple(zero.shape[1:]))


def evaluate(ciphertext: bytes, given: LinearMap) -> bytes:
    """Return the encrypted output for an encrypted code, at the server."""
    tenseal = require("tenseal", extra="he", purpose=_PURPOSE)
    keys, code = _apart(ciphertext)
    try:
        context = tenseal.context_from(keys)
        encrypted = tenseal.ckks_tensor_from(context, code)
        shape = list(encrypted.shape)
    except (ValueError, RuntimeError, TypeError) as error:
        raise ProtocolError(
            "the ciphertext cannot be read", code="malformed"
        ) from error
    if context.is_private():
        raise ProtocolError(
            "the client sent its secret key: it must keep it", code="refused"
        )
    if shape != [1, len(given.matrix)]:
        raise ProtocolError(
            f"expected {len(given.matrix)} encrypted values, got {shape}",
            code="wrong-shape",
        )
    matrix = tenseal.plain_tensor(given.matrix.double().tolist())
    bias = tenseal.plain_tensor([given.bias.double().tolist()])
    try:
        result: bytes = (encrypted.mm(matrix) + bias).serialize()
    except (ValueError, RuntimeError, TypeError) as error:
        raise ProtocolError(
            "the ciphertext cannot be computed with: its keys leave no room for a "
            "product",
            code="refused",
        ) from error
    return result


@dataclass
class Cost:
    """What encrypted predictions took, beside the same in the clear.

    Attributes:
        samples: that were predicted.
        sent_bytes, received_bytes: of encrypted messages.
        plain_sent_bytes, plain_received_bytes: of the messages that they replace.
        seconds: from the code to the output.
        plain_seconds: likewise in the clear, of zeros in place of the codes.
    """

    samples: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    plain_sent_bytes: int = 0
    plain_received_bytes: int = 0
    seconds: float = 0.0
    plain_seconds: float = 0.0


@dataclass
class Encrypting:
    """Sends codes encrypted, and returns outputs decrypted: a client's own end.

    For the cost in the clear, it also sends as many zeros, which tell nothing.

    Args:
        send: carries an encrypted code, or the zeros, to the server and returns its
            reply.
        shape: of one output.
    """

    send: Callable[[EncryptedCode | CodeMessage], Any]
    shape: tuple[int, ...]
    cost: Cost = field(default_factory=Cost)

    def __post_init__(self) -> None:
        tenseal = require("tenseal", extra="he", purpose=_PURPOSE)
        self._tenseal = tenseal
        self._context = tenseal.context(
            tenseal.SCHEME_TYPE.CKKS,
            poly_modulus_degree=DEGREE,
            coeff_mod_bit_sizes=list(MODULI_BITS),
        )
        self._context.global_scale = 2.0**SCALE_BITS
        self._keys: bytes = self._context.serialize(
            save_public_key=True,
            save_secret_key=False,
            save_galois_keys=False,
            save_relin_keys=True,
        )

    def __call__(self, request: CodeMessage) -> OutputMessage:
        """Return the output for a code that nobody else can read."""
        _check(request)
        began = time.perf_counter()
        rows = request.code.values.flatten(1)
        message = EncryptedCode(request.client, request.step, self._encrypted(rows))
        reply = self.send(message)
        if not isinstance(reply, EncryptedOutput):
            raise ProtocolError(
                f"expected an encrypted output, got {type(reply).__name__}"
            )
        output = self._decrypted(reply.ciphertext, len(rows))
        plain = OutputMessage(reply.client, reply.step, Code(output))
        self.cost.samples += len(rows)
        self.cost.sent_bytes += frame_bytes(message)
        self.cost.received_bytes += frame_bytes(reply)
        self.cost.plain_sent_bytes += frame_bytes(request)
        self.cost.plain_received_bytes += frame_bytes(plain)
        self.cost.seconds += time.perf_counter() - began
        self.cost.plain_seconds += self._plain_seconds(request)
        return plain

    def _plain_seconds(self, request: CodeMessage) -> float:
        """Return how long the server takes to answer zeros in the clear."""
        zeros = Code(torch.zeros_like(request.code.values))
        message = CodeMessage(request.client, request.step, zeros, is_training=False)
        began = time.perf_counter()
        self.send(message)
        return time.perf_counter() - began

    def _encrypted(self, rows: Tensor) -> bytes:
        values = self._tenseal.plain_tensor(rows.double().unsqueeze(1).tolist())
        code: bytes = self._tenseal.ckks_tensor(
            self._context, values, batch=True
        ).serialize()
        return _LENGTH.pack(len(self._keys)) + self._keys + code

    def _decrypted(self, ciphertext: bytes, samples: int) -> Tensor:
        try:
            found = self._tenseal.ckks_tensor_from(self._context, ciphertext).decrypt()
            values = torch.tensor(found.tolist(), dtype=torch.float64)
            return values[:samples].reshape(samples, *self.shape).float()
        except (ValueError, RuntimeError, TypeError) as error:
            raise ProtocolError("the encrypted output cannot be read") from error


def _check(request: CodeMessage) -> None:
    if request.is_training:
        raise ConfigError(
            "training is not encrypted: a step sends gradients, which need products "
            "of encrypted numbers"
        )
    if request.code.side or request.companions or request.labels is not None:
        raise CodecError(
            "encrypted prediction sends a code of numbers alone: choose a codec "
            "without side information, and a cut that shares no input"
        )
    if len(request.code.values) > MOST_SAMPLES:
        raise CodecError(
            f"expected at most {MOST_SAMPLES} samples at a time, got "
            f"{len(request.code.values)}"
        )


def _apart(ciphertext: bytes) -> tuple[bytes, bytes]:
    """Return the public keys and the code of an encrypted code."""
    start = _LENGTH.size
    if len(ciphertext) < start:
        raise ProtocolError("the ciphertext is too short", code="malformed")
    (length,) = _LENGTH.unpack(ciphertext[:start])
    if length > _KEY_BYTES:
        raise ProtocolError("the public keys are too long", code="too-large")
    return ciphertext[start : start + length], ciphertext[start + length :]
