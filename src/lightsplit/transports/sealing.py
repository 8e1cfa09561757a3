"""Hand-offs that the server carries but can neither read, change nor swap.

    sealed = magic (4) · nonce (12) · AES-256-GCM ciphertext · tag (16)

The associated data binds a sealed blob to its run, its turn and the contract's digest,
so a blob that belongs elsewhere is refused just like an altered one. All clients share
the key: sealing keeps the server out, but does not protect clients from each other.

The nonce is random; a key is good for 2**32 hand-offs (NIST SP 800-38D, section 8.3).
"""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from pathlib import Path
from typing import NoReturn, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lightsplit.errors import ConfigError, SealError
from lightsplit.transports import key_files

KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
MAGIC = b"LSH1"
SEAL_BYTES = len(MAGIC) + NONCE_BYTES + TAG_BYTES  # a seal adds this to every blob
MAX_BLOB_BYTES = 2**31 - 1 - TAG_BYTES  # OpenSSL takes no more in one call
FILE_PREFIX = "lightsplit-key-1:"


class SealingKey:
    """The secret that the clients of a run share and the server must not have."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise ConfigError(
                f"a sealing key has {KEY_BYTES} bytes, got {len(secret)} bytes"
            )
        self._secret = bytes(secret)

    @classmethod
    def generate(cls) -> Self:
        """Return a new key from the operating system's randomness."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a key that ``save`` wrote."""
        content = key_files.read(path, is_secret=True).strip()
        prefix = FILE_PREFIX.encode()
        if not content.startswith(prefix):
            raise ConfigError(f"{path} is not a sealing key made by 'lightsplit keys'")
        try:
            return cls(base64.b64decode(content[len(prefix) :], validate=True))
        except (binascii.Error, ConfigError) as error:
            raise ConfigError(f"{path} is a damaged sealing key") from error

    def save(self, path: Path) -> None:
        """Write the key to a new file that only its owner can read."""
        line = FILE_PREFIX + base64.b64encode(self._secret).decode() + "\n"
        key_files.write_new(path, line.encode(), is_secret=True)

    @property
    def fingerprint(self) -> str:
        """A name of the key that does not reveal it, for owners to compare."""
        return hashlib.sha256(b"lightsplit fingerprint " + self._secret).hexdigest()[
            :16
        ]

    def derive(self, *names: int | str) -> int:
        """Return 256 bits that only the holders of the key can compute.

        They depend on every name, in order, and do not reveal the key.
        """
        text = b"lightsplit derived " + repr(names).encode()
        return int.from_bytes(hmac.digest(self._secret, text, "sha256"), "big")

    def seal(self, blob: bytes, *, run: str, turn: int, contract: str) -> bytes:
        """Return ``blob`` sealed for this run, turn and contract digest."""
        if len(blob) > MAX_BLOB_BYTES:
            raise SealError(
                f"a hand-off can have at most {MAX_BLOB_BYTES} bytes, got {len(blob)}"
            )
        nonce = secrets.token_bytes(NONCE_BYTES)
        bound = _bound_to(run, turn, contract)
        return MAGIC + nonce + AESGCM(self._secret).encrypt(nonce, blob, bound)

    def open(self, sealed: bytes, *, run: str, turn: int, contract: str) -> bytes:
        """Return the sealed content; refuse any other run, turn or contract."""
        view = memoryview(sealed)
        start = len(MAGIC) + NONCE_BYTES
        if len(view) < SEAL_BYTES or view[: len(MAGIC)] != MAGIC:
            raise SealError(
                f"not a sealed hand-off: expected {MAGIC!r} and at least {SEAL_BYTES} "
                f"bytes, got {len(view)} bytes"
            )
        try:
            return AESGCM(self._secret).decrypt(
                view[len(MAGIC) : start], view[start:], _bound_to(run, turn, contract)
            )
        except (InvalidTag, OverflowError) as error:
            raise SealError(
                "the hand-off was altered, replayed or sealed with another key: "
                f"expected run {run!r}, turn {turn}, contract {contract!r}, "
                f"key {self.fingerprint}"
            ) from error

    def __repr__(self) -> str:
        return f"SealingKey(fingerprint={self.fingerprint!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a sealing key is not pickled; save() it and load() it")


def _bound_to(run: str, turn: int, contract: str) -> bytes:
    return json.dumps([MAGIC.decode(), run, turn, contract]).encode()
