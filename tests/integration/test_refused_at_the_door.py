"""Refused clients learn the reason; the server and the honest run continue."""

import contextlib
import dataclasses
import json
from datetime import UTC, datetime, timedelta

import grpc
import pytest
from lab.lines import Caller
from lab.processes import wait_until
from lab.runs import NAMES, Network, assert_same_weights, reference

from lightsplit.deployment.door import most_streams
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.errors import (
    ConfigError,
    ContractError,
    RemoteError,
    TransportError,
)
from lightsplit.experiments.cuts import make_cuts
from lightsplit.experiments.pieces import load_parts
from lightsplit.protocol import PROTOCOL_VERSION, Reader
from lightsplit.protocol.control import Ready
from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.credentials import TlsFiles
from lightsplit.transports.grpc_client import Connection


@pytest.fixture
def network(tmp_path):
    with Network(tmp_path) as network:
        yield network


@pytest.fixture
def secure(certificates, tmp_path):
    with Network(tmp_path, tls=certificates) as network:
        yield network


def refused(network, kind, code, *texts, name="alice", **hello):
    with Caller(network, name) as caller, pytest.raises(kind) as caught:
        caller.hello(**hello)
    assert caught.value.code == code
    for text in texts:
        assert text in str(caught.value)


def finish_honestly(network):
    network.join_all()
    assert_same_weights(network.finish(), reference())


TERMS = {
    "model": "resnet18",
    "cut": "l1",
    "topology": "vanilla",
    "heads": "private",
    "activation_shape": (16, 4, 4),
    "codec": "raw",
    "codec_options": {"seed": 1},
    "code_size": 7,
    "seed": 9,
    "clients": 4,
    "batch_size": 8,
    "turn_steps": 0,
}


@pytest.mark.parametrize("term", TERMS)
def test_another_term_is_refused_with_both_values(term, network):
    theirs = dataclasses.replace(network.contract, **{term: TERMS[term]})
    mine = getattr(network.contract, term)
    refused(
        network,
        ContractError,
        "contract-mismatch",
        f"{term}: client has {TERMS[term]!r}, server has {mine!r}",
        contract=theirs.to_json(),
    )


def test_another_projection_of_the_same_terms_has_its_own_code(network):
    theirs = dataclasses.replace(network.contract, fingerprint="0123abcd")
    mine = network.contract.fingerprint
    texts = (f"server has {mine!r}", "client has '0123abcd'")
    refused(
        network, ContractError, "wrong-fingerprint", *texts, contract=theirs.to_json()
    )


def test_a_client_with_another_projection_seed_is_refused(network):
    experiment = network.experiment.changed(training={"seed": 5})
    theirs = make_cuts(experiment, load_parts(experiment)).contract
    assert theirs.fingerprint != network.contract.fingerprint
    refused(
        network,
        ContractError,
        "contract-mismatch",
        f"server has {network.contract.fingerprint!r}",
        contract=theirs.to_json(),
    )


@pytest.mark.parametrize("more", [{}, {"a_term_of_the_future": 1}])
def test_another_version_has_its_own_code(more, network):
    terms = {
        **json.loads(network.contract.to_json()),
        "version": PROTOCOL_VERSION + 1,
        **more,
    }
    texts = (
        f"version: client has {PROTOCOL_VERSION + 1}, server has {PROTOCOL_VERSION}",
    )
    refused(network, ContractError, "version", *texts, contract=json.dumps(terms))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[" * 20000, f'{{"version": {PROTOCOL_VERSION}}}', "1e999"]
)
def test_bytes_that_are_not_a_contract_are_refused(text, network):
    refused(network, ContractError, "contract-mismatch", contract=text)


def test_a_contract_that_is_nested_deeply_is_refused_and_the_run_goes_on(network):
    terms = json.loads(network.contract.to_json())
    for depth in (200, 400, 800):
        terms["codec_options"] = {"a": "HERE"}
        text = json.dumps(terms).replace('"HERE"', "[" * depth + "]" * depth)
        refused(network, ContractError, "contract-mismatch", contract=text)
    finish_honestly(network)


def test_an_unknown_purpose_is_refused(network):
    texts = ("train or predict or agree", "'audit'")
    refused(network, RemoteError, "unknown-message", *texts, purpose="audit")


@pytest.mark.parametrize("purpose", ["train", "predict"])
def test_a_name_that_is_not_on_the_list_is_refused(purpose, network):
    texts = ("'mallory' is not among the 3 clients: alice, bob, carol",)
    refused(
        network, RemoteError, "unknown-client", *texts, name="mallory", purpose=purpose
    )


@pytest.mark.parametrize("batches", [0, 2**21, 2**63])
def test_an_impossible_number_of_batches_is_refused(batches, network):
    with Caller(network) as caller:
        caller.hello()
        with pytest.raises(ContractError, match=f"1 to 1048576 .* got {batches}"):
            caller.call(Ready(batches))


def test_other_batches_than_before_are_refused(network):
    with Caller(network) as caller:
        caller.hello()
        caller.post(Ready(2))
        wait_until(lambda: network.coordinator.members[0].batches, "Ready")
    with Caller(network) as caller:
        caller.hello()
        with pytest.raises(ContractError, match="had 2 batches per epoch, now 3"):
            caller.call(Ready(3))


def test_after_all_refusals_the_run_is_as_it_would_have_been(network):
    refused(network, RemoteError, "unknown-client", name="mallory")
    later = f'{{"version": {PROTOCOL_VERSION + 1}}}'
    refused(network, ContractError, "version", contract=later)
    refused(network, RemoteError, "unknown-message", purpose="")
    finish_honestly(network)


# Certificates.


def test_a_client_of_the_right_authority_must_be_on_the_list(
    secure, certificates, tmp_path
):
    CertificateFolder(certificates).make_client("mallory")
    texts = ("'mallory' is not among the 3 clients",)
    refused(secure, RemoteError, "unknown-client", *texts, name="mallory")
    finish_honestly(secure)


def test_a_client_cannot_speak_under_the_name_of_another(secure):
    with Caller(secure, "bob") as caller, pytest.raises(RemoteError) as caught:
        caller.hello(name="alice")
    assert caught.value.code == "unknown-client"
    assert "the certificate names 'bob', the client 'alice'" in str(caught.value)


@pytest.fixture
def foreign(tmp_path):
    """Another authority, with the same names."""
    folder = CertificateFolder(tmp_path / "foreign")
    folder.make_authority()
    folder.make_server()
    folder.make_client("alice")
    return folder


def test_the_server_of_another_authority_is_not_tried_again(secure, foreign):
    endpoint = Endpoint(
        f"127.0.0.1:{secure.port}", TlsFiles.of_client(foreign.path, "alice")
    )
    refused = pytest.raises(RemoteError, match="not a server of our authority")
    with Caller(secure, endpoint=endpoint) as caller, refused:
        caller.hello()


def connect_with(secure, ca, certificate, key):
    """Connect with files that our own checks would refuse before."""
    credentials = grpc.ssl_channel_credentials(
        ca.read_bytes(), key.read_bytes(), certificate.read_bytes()
    )
    reader = Reader(secure.expectation)
    return Connection(f"127.0.0.1:{secure.port}", reader, credentials)


def refused_by_tls(secure, ca, certificate, key):
    line = connect_with(secure, ca, certificate, key)
    with contextlib.closing(line), pytest.raises(TransportError):
        line.call(Ready(1))


def test_a_certificate_of_another_authority_does_not_get_in(
    secure, certificates, foreign
):
    own = CertificateFolder(certificates)
    refused_by_tls(secure, own.ca, foreign.client("alice"), foreign.client_key("alice"))
    mixed = TlsFiles(own.ca, foreign.client("alice"), foreign.client_key("alice"))
    with pytest.raises(ConfigError, match="was not signed by"):
        Caller(secure, endpoint=Endpoint(f"127.0.0.1:{secure.port}", mixed))
    finish_honestly(secure)


def test_an_expired_certificate_does_not_get_in(secure, certificates):
    own = CertificateFolder(certificates)
    long_ago = datetime.now(UTC) - timedelta(days=30)
    own.make_client("dora", days=1, starts=long_ago)
    try:
        with pytest.raises(ConfigError, match=r"dora\.crt expired on"):
            Caller(secure, "dora")
        refused_by_tls(secure, own.ca, own.client("dora"), own.client_key("dora"))
    finally:
        own.client("dora").unlink()
    finish_honestly(secure)


def test_the_servers_own_certificate_is_no_clients(secure, certificates):
    own = CertificateFolder(certificates)
    refused_by_tls(secure, own.ca, own.server, own.server_key)


def test_plain_text_does_not_get_in_where_tls_is_spoken(secure):
    endpoint = Endpoint(f"127.0.0.1:{secure.port}")
    with Caller(secure, endpoint=endpoint) as caller, pytest.raises(TransportError):
        caller.hello()


# Connections.


def test_one_connection_more_than_allowed_is_busy_and_idle_ones_are_cut(
    tmp_path, pass_time
):
    limit = most_streams(len(NAMES))
    with Network(tmp_path) as network, contextlib.ExitStack() as stack:
        for _ in range(limit):
            stack.enter_context(Caller(network))  # that says nothing
        idle = network.coordinator._idle
        wait_until(lambda: len(idle) == limit, "all connections")
        with Caller(network) as one_more, pytest.raises(TransportError) as caught:
            one_more.hello()
        assert caught.value.code == "busy"
        pass_time(60)
        finish_honestly(network)
