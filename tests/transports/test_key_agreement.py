"""A key that clients agree on, whatever the server does with their posts."""

import json
import shutil

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from lightsplit.errors import SealError
from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.credentials import TlsFiles
from lightsplit.transports.key_agreement import (
    Agreement,
    join_posts,
    own_ephemeral,
    split_posts,
)
from lightsplit.transports.registrar import Registrar

NAMES = ("alice", "bob", "carol")
SECRET = bytes(range(32))


@pytest.fixture
def folder(tmp_path):
    made = CertificateFolder(tmp_path / "tls")
    made.make_authority()
    made.make_server()
    for name in NAMES:
        made.make_client(name)
    return made


def make(folder, name, *, run="r", contract="c"):
    tls = TlsFiles.of_client(folder.path, name)
    return Agreement(tls, X25519PrivateKey.generate(), run=run, contract=contract)


@pytest.fixture
def ends(folder):
    return [make(folder, name) for name in NAMES]


def test_every_client_gets_the_key_and_sees_the_same_names(ends):
    posts = [end.offer() for end in ends]
    offers = ends[0].read(posts, posts[0])
    wraps = ends[0].wrap(SECRET, offers, posts)
    for end, own in zip(ends, posts, strict=True):
        seen = end.read(posts, own)
        assert tuple(offer.name for offer in seen) == NAMES
        assert end.unwrap(wraps, seen, posts, own) == SECRET


def test_nothing_that_the_server_carries_holds_the_key(ends):
    posts = [end.offer() for end in ends]
    wraps = ends[0].wrap(SECRET, ends[0].read(posts, posts[0]), posts)
    carried = join_posts([*posts, wraps])
    assert SECRET not in carried
    assert all(SECRET not in one for one in split_posts(carried, 4))


def test_an_ephemeral_key_that_the_server_puts_in_is_refused(ends):
    posts = [end.offer() for end in ends]
    forged = json.loads(posts[1])
    forged["ephemeral"] = json.loads(make_stranger_offer(ends))["ephemeral"]
    posts[1] = json.dumps(forged).encode()
    with pytest.raises(SealError, match="signature of a key's offer"):
        ends[0].read(posts, posts[0])


def make_stranger_offer(ends):
    ends[2]._ephemeral = X25519PrivateKey.generate()
    return ends[2].offer()


def test_the_server_cannot_be_a_client(ends, folder):
    files = TlsFiles(folder.ca, folder.server, folder.server_key)
    server = Agreement(files, X25519PrivateKey.generate(), run="r", contract="c")
    posts = [ends[0].offer(), server.offer(), ends[2].offer()]
    with pytest.raises(SealError, match="not the certificate of a client"):
        ends[0].read(posts, posts[0])


def test_a_client_of_another_authority_is_refused(ends, tmp_path):
    other = CertificateFolder(tmp_path / "other")
    other.make_authority()
    other.make_client("bob")
    posts = [ends[0].offer(), make(other, "bob").offer(), ends[2].offer()]
    with pytest.raises(SealError, match="was not signed by the CA"):
        ends[0].read(posts, posts[0])


@pytest.mark.parametrize("terms", [{"run": "older"}, {"contract": "other"}])
def test_an_offer_of_another_run_or_contract_is_refused(ends, folder, terms):
    posts = [ends[0].offer(), make(folder, "bob", **terms).offer(), ends[2].offer()]
    with pytest.raises(SealError, match="signature"):
        ends[0].read(posts, posts[0])


def test_one_client_cannot_stand_for_two(ends, folder):
    posts = [ends[0].offer(), ends[1].offer(), make(folder, "bob").offer()]
    with pytest.raises(SealError, match="from each client, got alice, bob, bob"):
        ends[0].read(posts, posts[0])


def test_a_client_that_is_left_out_notices(ends):
    posts = [end.offer() for end in ends]
    with pytest.raises(SealError, match="own offer"):
        ends[0].read(posts, b"another")


def test_clients_that_were_shown_different_offers_get_no_key(ends):
    posts = [end.offer() for end in ends]
    wraps = ends[0].wrap(SECRET, ends[0].read(posts, posts[0]), posts)
    swapped = [posts[0], posts[2], posts[1]]
    seen = ends[1].read(swapped, posts[1])
    with pytest.raises(SealError, match="signature"):
        ends[1].unwrap(wraps, seen, swapped, posts[1])


def test_wraps_that_another_client_signed_are_refused(ends):
    posts = [end.offer() for end in ends]
    forged = ends[1].wrap(b"x" * 32, ends[1].read(posts, posts[1]), posts)
    seen = ends[2].read(posts, posts[2])
    with pytest.raises(SealError, match="signature"):
        ends[2].unwrap(forged, seen, posts, posts[2])


def test_a_revoked_client_is_not_agreed_with(ends, folder, tmp_path):
    posts = [end.offer() for end in ends]
    authority = CertificateFolder(tmp_path / "authority")
    shutil.copytree(folder.path, authority.path)
    Registrar(authority).revoke("bob")
    shutil.copy(authority.revoked, folder.revoked)
    with pytest.raises(SealError, match="bob, who is revoked"):
        ends[0].read(posts, posts[0])


@pytest.mark.parametrize("post", [b"", b"[]", b"{}", b'{"certificate": 1}', b"[" * 99])
def test_what_is_no_offer_is_refused(ends, post):
    own = ends[0].offer()
    with pytest.raises(SealError, match="damaged"):
        ends[0].read([own, post], own)


@pytest.mark.parametrize("joined", [b"", b"{}", b"[1, 2]", b'["YQ=="]'])
def test_what_are_no_posts_is_refused(joined):
    with pytest.raises(SealError, match="posts"):
        split_posts(joined, 2)


def test_an_ephemeral_key_survives_a_restart_in_its_file(tmp_path):
    path = tmp_path / "draft"
    first = own_ephemeral(path)
    assert own_ephemeral(path).private_bytes_raw() == first.private_bytes_raw()
    assert own_ephemeral(None).private_bytes_raw() != first.private_bytes_raw()
