"""A fresh sealing key for a run, agreed between its clients through the server.

    every client   offer: an ephemeral X25519 key, signed with the certificate's key
    one client     draws the run's key and wraps it for each offer
    every client   unwraps it with its ephemeral key

The server carries all of this and can read none of it: it has no certificate of a
client to sign an offer with, and no ephemeral key to unwrap with. Everything is bound
to the run, the contract and all offers together, so clients that were shown different
offers get no common key. Ephemeral keys are forgotten afterwards: whoever steals the
certificates' keys later cannot open what was sealed (forward secrecy).
"""

import base64
import hashlib
import json
import secrets
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from lightsplit.errors import ConfigError, SealError
from lightsplit.transports import key_files, trust
from lightsplit.transports.authority import load_ec_key
from lightsplit.transports.certificates import check_client_name
from lightsplit.transports.credentials import TlsFiles
from lightsplit.transports.revocation import Revocations
from lightsplit.transports.sealing import KEY_BYTES, NONCE_BYTES, TAG_BYTES, SealingKey

_OFFER = b"lightsplit key offer 1 "
_WRAPS = b"lightsplit key wraps 1 "
_ECDSA = ec.ECDSA(SHA256())


class Offer(NamedTuple):
    """One client's part of an agreement, after its signature was checked.

    Attributes:
        name: in the certificate.
        signer: the certificate's public key.
        ephemeral: the key to wrap for.
    """

    name: str
    signer: ec.EllipticCurvePublicKey
    ephemeral: X25519PublicKey


class AgreedKey(NamedTuple):
    """The key of a run, and between whom it was agreed.

    Attributes:
        key: the same at every client, and nowhere else.
        run: its name; the key is for this run alone.
        names: of the clients; empty if the key comes from the client's folder.
        file: that keeps the key for a client that is started again.
    """

    key: SealingKey
    run: str
    names: tuple[str, ...]
    file: Path


class Agreement:
    """One client's end of the agreement of one run.

    Args:
        tls: this client's certificate, its key, and the CA that all of them trust.
        ephemeral: this client's key for this run alone.
        run: the run's name.
        contract: digest of the contract.
    """

    def __init__(
        self, tls: TlsFiles, ephemeral: X25519PrivateKey, *, run: str, contract: str
    ) -> None:
        self._tls = tls
        self._ephemeral = ephemeral
        self._bound = json.dumps([run, contract]).encode()

    def offer(self) -> bytes:
        """Return this client's offer."""
        certificate = trust.load_certificates(self._tls.certificate)[0]
        public = self._ephemeral.public_key().public_bytes_raw()
        return _packed(
            certificate=certificate.public_bytes(Encoding.DER),
            ephemeral=public,
            signature=self._sign(_OFFER, public),
        )

    def read(self, posts: list[bytes], own: bytes) -> list[Offer]:
        """Return the offers of all clients; refuse any that is not what it should be.

        Args:
            posts: the offers as the server passes them on.
            own: this client's own, which must be among them.
        """
        if own not in posts:
            raise SealError("the server left out this client's own offer of a key")
        offers = [self._checked(post) for post in posts]
        names = [offer.name for offer in offers]
        if len(set(names)) != len(names):
            raise SealError(
                f"expected one offer of a key from each client, got {', '.join(names)}"
            )
        return offers

    def wrap(self, secret: bytes, offers: list[Offer], posts: list[bytes]) -> bytes:
        """Return ``secret`` wrapped for every offer, signed."""
        seen = self._seen(posts)
        wraps = b"".join(self._wrapped(secret, one.ephemeral, seen) for one in offers)
        return _packed(wraps=wraps, signature=self._sign(_WRAPS, seen + wraps))

    def unwrap(
        self, post: bytes, offers: list[Offer], posts: list[bytes], own: bytes
    ) -> bytes:
        """Return the secret that the first client wrapped for this one."""
        seen, fields = self._seen(posts), _unpacked(post, "wraps", "signature")
        wraps = fields["wraps"]
        self._verify(offers[0].signer, _WRAPS, seen + wraps, fields["signature"])
        size = NONCE_BYTES + KEY_BYTES + TAG_BYTES
        start = posts.index(own) * size
        wrapped = wraps[start : start + size]
        cipher = AESGCM(self._shared(offers[0].ephemeral, seen))
        try:
            return cipher.decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], seen)
        except (InvalidTag, ValueError) as error:
            raise SealError(
                "the run's key does not open: the clients were shown different offers"
            ) from error

    def _wrapped(self, secret: bytes, to: X25519PublicKey, seen: bytes) -> bytes:
        nonce = secrets.token_bytes(NONCE_BYTES)
        return nonce + AESGCM(self._shared(to, seen)).encrypt(nonce, secret, seen)

    def _shared(self, other: X25519PublicKey, seen: bytes) -> bytes:
        try:
            common = self._ephemeral.exchange(other)
        except ValueError as error:  # a key of low order
            raise SealError("an offer holds a key that gives no secret") from error
        return HKDF(SHA256(), KEY_BYTES, salt=seen, info=_WRAPS).derive(common)

    def _seen(self, posts: list[bytes]) -> bytes:
        """Return the digest of everything that all clients must have seen alike."""
        text = json.dumps([base64.b64encode(one).decode() for one in posts])
        return hashlib.sha256(self._bound + text.encode()).digest()

    def _sign(self, what: bytes, content: bytes) -> bytes:
        return load_ec_key(self._tls.key).sign(what + self._bound + content, _ECDSA)

    def _verify(
        self,
        signer: ec.EllipticCurvePublicKey,
        what: bytes,
        content: bytes,
        signature: bytes,
    ) -> None:
        try:
            signer.verify(signature, what + self._bound + content, _ECDSA)
        except InvalidSignature as error:
            raise SealError("the signature of a key's offer is not valid") from error

    def _checked(self, post: bytes) -> Offer:
        fields = _unpacked(post, "certificate", "ephemeral", "signature")
        name, signer = _owner(fields["certificate"], self._tls)
        self._verify(signer, _OFFER, fields["ephemeral"], fields["signature"])
        try:
            ephemeral = X25519PublicKey.from_public_bytes(fields["ephemeral"])
        except ValueError as error:
            raise SealError(f"the offer of {name} holds no key") from error
        return Offer(name, signer, ephemeral)


def _owner(der: bytes, tls: TlsFiles) -> tuple[str, ec.EllipticCurvePublicKey]:
    """Return name and key of a certificate that the CA signed for a client."""
    try:
        certificate = x509.load_der_x509_certificate(der)
        trust.check_is_trusted(certificate, ca=tls.ca, role="client")
        (name,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        owner, key = check_client_name(str(name.value)), certificate.public_key()
    except (ValueError, ConfigError) as error:
        raise SealError(f"an offer has no good certificate: {error}") from error
    if certificate.serial_number in Revocations(tls.revoked, tls.ca):
        raise SealError(f"an offer of a key comes from {owner}, who is revoked")
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise SealError(f"the certificate of {owner} is not on an elliptic curve")
    return owner, key


def _packed(**fields: bytes) -> bytes:
    text = {name: base64.b64encode(value).decode() for name, value in fields.items()}
    return json.dumps(text).encode()


def _unpacked(post: bytes, *names: str) -> dict[str, bytes]:
    try:
        found: Any = json.loads(post)
        return {name: base64.b64decode(found[name], validate=True) for name in names}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SealError("a part of the key's agreement is damaged") from error


def join_posts(posts: list[bytes]) -> bytes:
    """Return the posts of all clients as one text, which the server passes on."""
    return json.dumps([base64.b64encode(one).decode() for one in posts]).encode()


def split_posts(joined: bytes, clients: int) -> list[bytes]:
    """Return the posts of all clients, in the order of their numbers."""
    try:
        found = [base64.b64decode(one, validate=True) for one in json.loads(joined)]
    except (ValueError, TypeError, RecursionError) as error:
        raise SealError("the server passed on no posts of the clients") from error
    if len(found) != clients:
        raise SealError(f"expected posts of {clients} clients, got {len(found)}")
    return found


def own_ephemeral(path: Path | None) -> X25519PrivateKey:
    """Return this run's ephemeral key; a file keeps it until the agreement is over."""
    if path is not None and path.exists():
        return X25519PrivateKey.from_private_bytes(key_files.read(path, is_secret=True))
    key = X25519PrivateKey.generate()
    if path is not None:
        key_files.write_new(path, key.private_bytes_raw(), is_secret=True)
    return key
