import pytest
from typer.testing import CliRunner

from lightsplit.cli.app import app
from lightsplit.transports.credentials import (
    TlsFiles,
    channel_credentials,
    server_credentials,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def certs(tmp_path):
    def call(*arguments):
        return CliRunner().invoke(app, ["certs", str(tmp_path / "tls"), *arguments])

    return call


def test_the_files_it_makes_can_be_used_at_once(certs, tmp_path):
    result = certs("--server-name", "10.0.0.5", "--client", "alice", "--client", "bob")
    assert result.exit_code == 0, result.output
    server_credentials(TlsFiles.of_server(tmp_path / "tls"))
    for name in ("alice", "bob"):
        channel_credentials(TlsFiles.of_client(tmp_path / "tls", name))


def test_it_says_who_needs_which_files(certs):
    lines = certs("--client", "alice").output.splitlines()
    assert any("the server" in line and "server.key" in line for line in lines)
    assert any("client alice" in line and "alice.key" in line for line in lines)
    (about_ca_key,) = [line for line in lines if "ca.key" in line]
    assert "nobody" in about_ca_key
    assert "offline" in about_ca_key


def test_a_second_call_keeps_existing_files_and_adds_the_rest(certs, tmp_path):
    certs("--client", "alice")
    before = (tmp_path / "tls" / "clients" / "alice.crt").read_bytes()
    result = certs("--client", "alice", "--client", "carol", "--client", "carol")
    words = [line.split()[:1] for line in result.stdout.splitlines()[:4]]
    assert words == [["kept"], ["kept"], ["kept"], ["made"]]
    assert (tmp_path / "tls" / "clients" / "alice.crt").read_bytes() == before


@pytest.mark.parametrize(
    "arguments", [("--client", "a/b"), ("--server-name", "host:50051")]
)
def test_an_error_is_one_line_and_exit_code_1(certs, arguments):
    result = certs(*arguments)
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("error: a ")


def test_a_bad_client_name_leaves_nothing(certs, tmp_path):
    certs("--client", "good", "--client", "not good")
    assert not (tmp_path / "tls").exists()


def test_the_help_teaches(certs):
    text = certs("--help").output
    assert "lightsplit certs tls --client carol" in text
    assert "mutual TLS" in text


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return what runs a command of the group in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, ["certs", *arguments])


def test_keys_stay_at_their_owners(run, tmp_path):
    steps = [
        ("make", "pki", "--authority-only"),
        ("request", "mine", "--client", "alice"),
        ("sign", "pki", "mine/alice.csr", "--client", "alice"),
        ("request", "theirs", "--server", "--server-name", "10.0.0.5"),
        ("sign", "pki", "theirs/server.csr", "--server"),
        ("renew", "pki", "--client", "alice", "--days", "9"),
        ("renew", "pki", "--server"),
    ]
    told = [run(*step) for step in steps]
    assert [one.exit_code for one in told] == [0] * len(steps), told[-1].output
    asked, signed = (one.stdout.split("key: ")[1][:16] for one in told[1:3])
    assert asked == signed  # the fingerprint that owner and authority compare
    keys = {str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*.key")}
    assert keys == {"pki/ca.key", "mine/alice.key", "theirs/server.key"}


def test_revoking_says_what_to_do_with_the_list(run):
    run("make", "pki", "--client", "alice")
    result = run("revoke", "pki", "alice")
    assert "revoked  alice  serial" in result.stdout
    assert "copy pki/ca.crl beside ca.crt at the server" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("request", "mine"), "either --client NAME or --server"),
        (("request", "m", "--client", "a", "--server"), "either --client NAME or"),
        (
            ("request", "m", "--client", "a", "--server-name", "h"),
            "belongs to --server",
        ),
        (("sign", "pki", "absent.csr", "--client", "a"), "cannot read absent.csr"),
        (("renew", "pki", "--client", "a"), "nothing to renew"),
        (("revoke", "pki", "a"), "nothing to revoke"),
        (("revoke", "pki", "server"), "cannot be revoked"),
        (
            ("make", "p", "--authority-only", "--client", "a"),
            "makes no server",
        ),
    ],
)
def test_mistakes_with_requests_are_one_line(run, arguments, told):
    result = run(*arguments)
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert told in result.stderr
