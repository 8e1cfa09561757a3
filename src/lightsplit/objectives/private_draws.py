"""Random numbers for noise that somebody may try to remove.

    torch's generator ──256 bits──┐
    the numbers to be hidden ─────┴─HMAC──► key ──AES in counter mode──► 64-bit words

Torch's generator is a Mersenne Twister: anyone who sees enough of its numbers can
compute the others. Differential privacy must hold against an attacker who knows every
sample but one, and so most of the noise. Therefore the generator, which the client's
secret seeds, only makes a key.

The key also depends on the numbers to be hidden. A server that makes a client repeat a
step with other weights gets other noise, so it cannot subtract one from the other. The
same numbers at the same place get the same noise, so a code that is sent again reveals
nothing new.
"""

import hmac

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray
from torch import Tensor

KEY_WORDS = 8  # of 32 bits each
_UNIT = 2.0**-53


def draw_words(count: int, hidden: Tensor) -> "NDArray[np.uint64]":
    """Return words that depend on torch's generator and on the ``hidden`` numbers."""
    drawn = torch.randint(0, 2**32, (KEY_WORDS,), dtype=torch.int64)
    clear = hidden.detach().to("cpu", torch.float32).contiguous().numpy().tobytes()
    key = hmac.digest(drawn.numpy().astype("<u4").tobytes(), clear, "sha256")
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(stream.update(bytes(8 * count)), dtype="<u8").copy()


def draw_normal(hidden: Tensor) -> Tensor:
    """Return a normal number for each of the ``hidden`` numbers (Box and Muller)."""
    pairs = (hidden.numel() + 1) // 2
    words = (draw_words(2 * pairs, hidden) >> np.uint64(11)).reshape(2, pairs)
    lengths = np.sqrt(-2 * np.log((words[0] + 1.0) * _UNIT))  # of (0, 1]: never log 0
    angles = 2 * np.pi * _UNIT * words[1]
    normal = np.concatenate([lengths * np.cos(angles), lengths * np.sin(angles)])
    return torch.from_numpy(normal[: hidden.numel()]).view(hidden.shape).to(hidden)
