"""Streams and connections that say nothing keep no honest client out."""

import contextlib
import resource
import socket
import threading
import time

import grpc
import pytest
from lab.faults import left_behind
from lab.lines import Caller
from lab.runs import NAMES, Network, assert_same_weights, reference

from lightsplit.errors import ExchangeError
from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.credentials import channel_credentials
from lightsplit.transports.grpc_server import SESSION

SILENT = 30  # more than the server has room for


def test_silent_streams_lock_nobody_out(certificates, tmp_path):
    """Carol and a stranger hold as many streams as they can, and say nothing."""
    folder = CertificateFolder(certificates)
    if not folder.client("stranger").exists():
        folder.make_client("stranger")
    plan = {"step_timeout_seconds": 600.0}
    began = time.monotonic()
    with (
        Network(tmp_path, tls=certificates, plan=plan, epochs=1) as network,
        contextlib.ExitStack() as stack,
    ):
        for name in ("stranger", "carol"):
            for _ in range(SILENT):
                stack.enter_context(Caller(network, name))
        network.join("alice")
        network.join("bob")
        refused = pytest.raises(ExchangeError, match="'stranger' is not among the 3")
        with Caller(network, "stranger") as stranger, refused:
            stranger.hello()
        network.join("carol")  # her own silent streams give way
        got = network.finish()
    assert_same_weights(got, reference(epochs=1))
    assert time.monotonic() - began < 300  # half of the step timeout


def test_silent_streams_that_come_again_do_not_lock_their_own_name_out(
    certificates, tmp_path
):
    """Somebody has Carol's certificate and opens a stream for each that is cut off."""
    with (
        Network(tmp_path, tls=certificates, epochs=1) as network,
        silent_streams_again_and_again(network, "carol"),
    ):
        for name in NAMES:
            network.join(name)
        got = network.finish()
    assert_same_weights(got, reference(epochs=1))


@contextlib.contextmanager
def silent_streams_again_and_again(network, name):
    end, endpoint = threading.Event(), network.endpoint(name)
    credentials = channel_credentials(endpoint.tls)
    with grpc.secure_channel(endpoint.address, credentials) as channel:
        method = channel.stream_stream(SESSION)
        thread = threading.Thread(target=_keep_silent, args=(method, end))
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()


def _keep_silent(method, end):
    calls = []
    while not end.wait(0.02):
        calls = [call for call in calls if call.is_active()]
        calls += [method(_silence(end)) for _ in range(8 - len(calls))]


def _silence(end):
    end.wait()
    yield from ()


def test_a_connection_without_a_handshake_is_closed(certificates, tmp_path):
    with (
        Network(tmp_path, tls=certificates, epochs=1) as network,
        socket.create_connection(("127.0.0.1", network.port), timeout=60) as line,
    ):
        with contextlib.suppress(ConnectionResetError):
            assert line.recv(1) == b""
        network.join_all()
        got = network.finish()
    assert_same_weights(got, reference(epochs=1))


@pytest.fixture
def few_descriptors(zygote):
    """Processes that start now may open 300 files."""
    pid = zygote._process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (300, before[1]))
    yield
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few_descriptors")
def test_idle_connections_leave_descriptors_and_room_for_the_run(make_cluster):
    cluster = make_cluster(
        {}, serve=["--checkpoint-every", 1], join=["--give-up-seconds", 300]
    )
    port = cluster.start_server()
    cluster.ports = dict.fromkeys(NAMES, port)
    with contextlib.ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        for name in NAMES:
            cluster.start_client(name)
        assert [cluster.clients[name].wait() for name in NAMES] == [0, 0, 0]
    assert cluster.server.wait() == 0, cluster.server.text
    assert_same_weights(left_behind(cluster), reference())
