import ipaddress
import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lightsplit.errors import ConfigError
from lightsplit.transports import trust
from lightsplit.transports.certificates import CertificateFolder, check_client_name


@pytest.fixture
def folder(tmp_path):
    made = CertificateFolder(tmp_path)
    made.make_authority()
    return made


def load(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


def extension(path, kind):
    return load(path).extensions.get_extension_for_class(kind)


def test_the_layout_is_as_told_and_only_keys_are_secret(folder):
    folder.make_server()
    folder.make_client("alice")
    modes = {
        str(path.relative_to(folder.path)): stat.S_IMODE(path.stat().st_mode)
        for path in folder.path.rglob("*")
        if path.is_file()
    }
    assert modes == {
        "ca.crt": 0o644,
        "ca.key": 0o600,
        "server.crt": 0o644,
        "server.key": 0o600,
        "clients/alice.crt": 0o644,
        "clients/alice.key": 0o600,
    }


def test_the_authority_may_sign_leaves_and_nothing_else(folder):
    basic = extension(folder.ca, x509.BasicConstraints)
    usage = extension(folder.ca, x509.KeyUsage)
    assert (basic.critical, basic.value.ca, basic.value.path_length) == (True, True, 0)
    assert (usage.critical, usage.value.key_cert_sign) == (True, True)
    assert not usage.value.digital_signature
    load(folder.ca).verify_directly_issued_by(load(folder.ca))


def test_leaves_can_sign_no_certificate_and_have_one_purpose(folder):
    folder.make_server()
    folder.make_client("alice")
    purposes = {
        folder.server: ExtendedKeyUsageOID.SERVER_AUTH,
        folder.client("alice"): ExtendedKeyUsageOID.CLIENT_AUTH,
    }
    for path, purpose in purposes.items():
        assert not extension(path, x509.BasicConstraints).value.ca
        assert not extension(path, x509.KeyUsage).value.key_cert_sign
        assert list(extension(path, x509.ExtendedKeyUsage).value) == [purpose]


def test_a_leaf_names_its_key_and_the_authoritys(folder):
    path = folder.make_client("alice").path
    own = extension(path, x509.SubjectKeyIdentifier).value.digest
    issuer = extension(path, x509.AuthorityKeyIdentifier).value.key_identifier
    assert issuer == extension(folder.ca, x509.SubjectKeyIdentifier).value.digest
    assert own != issuer
    load(path).verify_directly_issued_by(load(folder.ca))


def test_the_server_is_valid_for_its_names_and_this_machine(folder):
    folder.make_server(["Train.Example.org", "10.0.0.5", "localhost"])
    names = extension(folder.server, x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "train.example.org"]
    assert names.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address(text) for text in ("127.0.0.1", "::1", "10.0.0.5")
    ]


def test_a_clients_identity_is_its_common_name(folder):
    subject = load(folder.make_client("alice-1.lab_2").path).subject
    (name,) = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert name.value == "alice-1.lab_2"


def test_validity_begins_a_little_ago_and_lasts_the_days(folder):
    made = folder.make_client("alice", days=7)
    now = datetime.now(UTC)
    begin = load(made.path).not_valid_before_utc
    assert timedelta(minutes=5) < now - begin < timedelta(days=1)
    assert abs(made.expires - now - timedelta(days=7)) < timedelta(minutes=1)


@pytest.mark.parametrize("days", [0, -1, 40_000])
def test_days_out_of_range_are_refused_and_leave_no_key(folder, days):
    with pytest.raises(ConfigError, match=f"got {days}"):
        folder.make_client("alice", days=days)
    assert not folder.client_key("alice").exists()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a b",
        "a/b",
        "..",
        ".hidden",
        "-x",
        "é",
        "a\n",
        "a\0",
        "x" * 65,
        "CA",
        "server",
    ],
)
def test_a_name_that_could_be_mistaken_is_refused(folder, name):
    with pytest.raises(ConfigError, match="a client's name has"):
        folder.make_client(name)


@pytest.mark.parametrize("name", ["a", "7", "x" * 64, "alice.lab_2-b"])
def test_a_plain_name_is_taken(name):
    assert check_client_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "host:50051", "a b", "*.example.org", "10.0.0.256", "-a", "a." * 127 + "com"],
)
def test_a_server_name_that_no_client_could_dial_is_refused(folder, name):
    with pytest.raises(ConfigError, match="host name or an IP address"):
        folder.make_server([name])


def test_a_zone_in_an_address_is_refused(folder):
    with pytest.raises(ConfigError, match="zone"):
        folder.make_server(["fe80::1%eth0"])


def test_existing_files_are_kept(folder):
    folder.make_server(["10.0.0.5"])
    folder.make_client("alice")
    before = {p: p.read_bytes() for p in folder.path.rglob("*") if p.is_file()}
    again = CertificateFolder(folder.path)
    made = [again.make_authority(), again.make_server(), again.make_client("alice")]
    assert not any(one.is_new for one in made)
    assert {p: p.read_bytes() for p in before} == before


def test_a_client_is_added_later_by_the_same_authority(folder):
    folder.make_client("alice")
    made = CertificateFolder(folder.path).make_client("bob")
    assert made.is_new
    trust.check_certificate(made.path, ca=folder.ca, role="client")


def test_a_kept_server_that_lacks_a_name_is_refused(folder):
    folder.make_server(["10.0.0.5"])
    with pytest.raises(ConfigError, match=r"not valid for 10\.0\.0\.6"):
        folder.make_server(["10.0.0.5", "10.0.0.6"])


def test_a_kept_certificate_that_expired_is_refused_with_the_remedy(folder):
    long_ago = datetime.now(UTC) - timedelta(days=30)
    folder.make_client("alice", days=1, starts=long_ago)
    with pytest.raises(ConfigError, match=r"expired on .*certs renew"):
        folder.make_client("alice")


@pytest.mark.parametrize("part", ["ca", "server", "client"])
def test_a_removed_certificate_is_made_anew_for_the_same_key(folder, part):
    folder.make_server()
    alice = folder.make_client("alice").path
    removed = {"ca": folder.ca, "server": folder.server, "client": alice}[part]
    before = load(removed)
    removed.unlink()
    folder.make_authority(), folder.make_server(), folder.make_client("alice")
    assert load(removed).public_key() == before.public_key()
    assert load(removed).serial_number != before.serial_number
    for path, role in ((folder.server, "server"), (alice, "client")):
        trust.check_certificate(path, ca=folder.ca, role=role)


def test_without_the_authoritys_key_nothing_is_signed_or_left(folder):
    folder.ca_key.unlink()
    with pytest.raises(ConfigError, match=r"cannot read .*ca\.key"):
        folder.make_client("alice")
    assert not folder.client_key("alice").exists()
    assert not folder.make_authority().is_new


def test_a_key_of_another_authority_signs_nothing(folder, tmp_path):
    other = CertificateFolder(tmp_path / "other")
    other.make_authority()
    folder.ca_key.write_bytes(other.ca_key.read_bytes())
    with pytest.raises(ConfigError, match="does not belong"):
        folder.make_client("alice")


def test_a_client_file_of_another_name_is_refused(folder):
    folder.make_client("Alice").path.rename(folder.client("alice"))
    with pytest.raises(ConfigError, match=r"CN=Alice.*not to 'alice'"):
        folder.make_client("alice")


def test_a_key_of_another_kind_is_refused(folder):
    key = ed25519.Ed25519PrivateKey.generate()
    path = folder.client_key("alice")
    path.parent.mkdir()
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="elliptic curve"):
        folder.make_client("alice")
