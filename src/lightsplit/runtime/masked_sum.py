"""Sums that the server computes from numbers that it cannot read.

    owner i   x_i ─► whole numbers, 2**36 to 1 ─► + pad_i  modulo 2**64 ─┐
    server    Σ (x_i + pad_i)  modulo 2**64  ◄───────────────────────────┘
    owners    Σ − pad_1 − pad_2 …  =  Σ x_i, exactly, in any order of arrival

A pad is the key stream of AES-256 in counter mode. Its key derives from the clients'
sealing key, the run and the round; its start is a random nonce that travels with the
part. So no pad is ever used twice, even if a part is sent again with other numbers
because the server repeats a round. Without the key, an observer sees uniformly
distributed numbers and how many owners took part.

The owners notice if the server changes a sum. Every part ends with two checks that are
linear in it, with factors that derive from the key: Σ_j a_j · x_j modulo two primes.
They must also fit the sum. A forged sum passes with a chance of 1 in 2**31.
"""

import secrets
from collections.abc import Sequence

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray
from torch import Tensor

from lightsplit.errors import RunError, SealError
from lightsplit.protocol.messages import NONCE_BYTES, Share, Total
from lightsplit.transports.sealing import SealingKey

SCALE = 2.0**36  # integer steps per 1: rounding changes a part by at most 2**-37
LARGEST = 2.0**15  # of a part
MOST_PARTS = 2**11  # so a sum stays below 2**62
_PRIMES = (2**31 - 1, 2**31 - 19)  # both prime; their product is beyond any sum
CHECKS = len(_PRIMES)  # numbers that follow a part

Words = NDArray[np.uint64]


def to_whole(values: Tensor) -> Tensor:
    """Return numbers as integers (int64), scaled."""
    if not bool((values.abs() <= LARGEST).all()):  # also catches NaN and infinity
        raise RunError(
            f"a gradient or a change of head or tail is not finite or beyond "
            f"{LARGEST:.0f}, too large for a sum with the other owners; lower the "
            "learning rate or give --clip"
        )
    return (values.double() * SCALE).round().to(torch.int64)


def from_whole(numbers: Tensor) -> Tensor:
    """Return the numbers that scaled integers stand for, as float64."""
    return numbers.double() / SCALE


def added(shares: Sequence[Share]) -> tuple[Tensor, Tensor]:
    """Return the sum of hidden parts, and their nonces in the order of the owners."""
    ordered = sorted(shares, key=lambda share: share.client)
    lengths = {len(share.numbers) for share in ordered}
    if len(lengths) != 1:
        raise RunError(f"expected parts of one length, got {sorted(lengths)} numbers")
    total = np.zeros(lengths.pop(), dtype=np.uint64)
    for share in ordered:
        total += _words(share.numbers)
    return _numbers(total), torch.cat([share.nonces for share in ordered])


def totals(shares: Sequence[Share], samples: int) -> dict[int, Total]:
    """Return the sum of hidden parts to each owner, with the samples of all of them."""
    numbers, nonces = added(shares)
    return {
        one.client: Total(one.client, one.step, samples, numbers, nonces)
        for one in shares
    }


class MaskedSum:
    """Hides the parts of one round, and reads their sum.

    Args:
        key: the same at every owner of the run, and unknown to the server.
        run: the run's name.
        number: of the round.
    """

    def __init__(self, key: SealingKey, run: str, number: int) -> None:
        self._pad_key = key.derive("pad", run, number).to_bytes(32, "big")
        self._check_key = key.derive("sum check", run, number).to_bytes(32, "big")
        self._number = number

    def hide(self, part: Tensor) -> tuple[Tensor, Tensor]:
        """Return a part under a new pad, and the pad's nonce."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        plain = torch.cat([part, torch.tensor(self._checks(part))])
        hidden = _words(plain) + self._pad(nonce, len(plain))
        return _numbers(hidden), torch.tensor([list(nonce)], dtype=torch.uint8)

    def read(self, total: Tensor, nonces: Tensor) -> Tensor:
        """Return the sum of all parts whose nonces are given."""
        starts = [bytes(row.tolist()) for row in nonces]
        plain = _words(total).copy()
        for nonce in starts:
            plain -= self._pad(nonce, len(plain))
        found = _numbers(plain)
        part, given = found[:-CHECKS], found[-CHECKS:].tolist()
        is_whole = [
            one % prime == check
            for one, prime, check in zip(
                given, _PRIMES, self._checks(part), strict=True
            )
        ]
        is_small = bool((part.double().abs() <= LARGEST * SCALE * len(starts)).all())
        if len(set(starts)) < len(starts) or not (all(is_whole) and is_small):
            raise SealError(
                f"the sum of round {self._number} was altered on its way, or holds a "
                "part that was made with another key: nothing was changed here"
            )
        return part

    def _pad(self, nonce: bytes, length: int) -> Words:
        return _stream(self._pad_key, nonce, length)

    def _checks(self, part: Tensor) -> list[int]:
        """Return one number per prime that is linear in ``part``."""
        factors = _stream(self._check_key, bytes(NONCE_BYTES), len(part))
        return [_product(part, factors, prime) for prime in _PRIMES]


def _product(part: Tensor, factors: Words, prime: int) -> int:
    """Return the scalar product modulo a prime below 2**31."""
    numbers = (part.numpy() % prime).astype(np.uint64)
    products = numbers * (factors % np.uint64(prime)) % np.uint64(prime)
    return int(products.sum(dtype=np.uint64)) % prime


def _stream(key: bytes, nonce: bytes, length: int) -> Words:
    encryptor = Cipher(algorithms.AES(key), modes.CTR(nonce)).encryptor()
    return np.frombuffer(encryptor.update(bytes(8 * length)), dtype=np.uint64)


def _words(numbers: Tensor) -> Words:
    return numbers.numpy().view(np.uint64)


def _numbers(words: Words) -> Tensor:
    return torch.from_numpy(words.view(np.int64))
