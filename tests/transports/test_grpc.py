"""One stream per client over a real socket: frames in order, errors by their kind."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from lightsplit.errors import (
    ConfigError,
    ContractError,
    ProtocolError,
    RemoteError,
    TransportError,
)
from lightsplit.protocol.control import Finished, Grant, Heard, Ready, TurnDone, Welcome
from lightsplit.protocol.wire import PART_BYTES, Limits, Reader
from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.credentials import (
    TlsFiles,
    channel_credentials,
    server_credentials,
)
from lightsplit.transports.grpc_client import Connection
from lightsplit.transports.grpc_server import SESSION, SessionServer

BIG = bytes(range(256)) * (3 * PART_BYTES // 256)


@pytest.fixture
def serve():
    """Return what serves a session and gives its port."""
    with contextlib.ExitStack() as stack:

        def serve(session, *, sessions=4, credentials=None, host="127.0.0.1", **limits):
            server = SessionServer(
                session,
                lambda: Reader(limits=Limits(**limits)),
                credentials=credentials,
                max_sessions=sessions,
            )
            stack.callback(server.stop, 0.1)
            port = server.bind(f"{host}:0")
            server.start()
            return port

        yield serve


@pytest.fixture
def connect():
    """Return what opens a connection that is closed after the test."""
    with contextlib.ExitStack() as stack:

        def connect(port, credentials=None):
            line = Connection(f"127.0.0.1:{port}", Reader(), credentials)
            stack.callback(line.close)
            return line

        yield connect


def echo(_peer, requests):
    for message in requests:
        yield Grant(message.batches, 0, 0) if isinstance(message, Ready) else message


def test_every_message_is_answered_in_order(serve, connect):
    line = connect(serve(echo))
    assert [line.call(Ready(n)).turn for n in range(5)] == list(range(5))


def test_a_long_message_travels_in_parts(serve, connect):
    def session(peer, requests):
        peer.allow_sides()
        yield from echo(peer, requests)

    line = connect(serve(session))
    assert line.call(TurnDone(1, BIG)) == TurnDone(1, BIG)
    assert line.call(Ready(2)).turn == 2


def test_a_side_is_not_even_read_before_it_is_allowed(serve, connect):
    line = connect(serve(echo))
    with pytest.raises(RemoteError, match="at most 65536 may come") as caught:
        line.call(TurnDone(1, BIG))
    assert caught.value.code == "too-large"


def test_the_agreed_limits_hold_once_sides_are_allowed(serve, connect):
    def session(peer, requests):
        peer.allow_sides()
        yield from echo(peer, requests)

    line = connect(serve(session, side_bytes=1000))
    assert line.call(TurnDone(1, bytes(900))).turn == 1
    with pytest.raises(RemoteError, match="at most 1000 may come"):
        line.call(TurnDone(2, bytes(1100)))


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ProtocolError("no", code="not-your-turn"), RemoteError),
        (ProtocolError("later", code="stale-turn"), TransportError),
        (ContractError("no"), ContractError),
        (ConfigError("no"), RemoteError),
    ],
)
def test_a_refusal_is_raised_where_it_arrives(raised, expected, serve, connect):
    def session(_peer, requests):
        next(requests)
        raise raised
        yield

    with pytest.raises(expected, match=str(raised)) as caught:
        connect(serve(session)).call(Ready(1))
    assert caught.value.code == getattr(raised, "code", "refused")


def test_a_session_that_ends_is_a_broken_exchange(serve, connect):
    def session(_peer, requests):
        next(requests)
        yield Welcome(0, "r")

    line = connect(serve(session))
    line.call(Ready(1))
    with pytest.raises(TransportError, match="closed the connection"):
        line.call(Ready(2))


def test_a_session_can_be_cancelled_from_outside(serve, connect):
    peers = []

    def session(peer, requests):
        peers.append(peer)
        yield from echo(peer, requests)

    line = connect(serve(session))
    line.call(Ready(1))
    assert peers[0].is_alive()
    peers[0].cancel()
    with pytest.raises(TransportError):
        line.call(Ready(2))
    deadline = time.monotonic() + 30
    while peers[0].is_alive():  # gRPC takes note of it a moment later
        assert time.monotonic() < deadline, "the session is still alive"
        time.sleep(0.01)


@pytest.mark.parametrize("is_orderly", [True, False])
def test_a_session_ends_when_its_client_goes_and_stands_if_it_said_so(
    is_orderly, serve
):
    ended, heard = threading.Event(), []

    def session(_peer, requests):
        try:
            for message in requests:
                heard.append(message)
                if message != Heard():
                    yield message
        finally:
            ended.set()

    line = Connection(f"127.0.0.1:{serve(session)}", Reader(), None)
    line.call(Ready(1))
    if is_orderly:
        line.finish(Heard())
        assert heard == [Ready(1), Heard()]  # already: finish waits for it
    line.close()
    assert ended.wait(30)
    assert heard == [Ready(1), Heard()][: 1 + is_orderly]


def test_whoever_waits_for_a_client_is_told_when_it_is_gone(serve):
    gone, alive = threading.Event(), []

    def session(peer, requests):
        peer.when_gone(gone.set)
        alive.append(peer.is_alive)
        yield from echo(peer, requests)

    line = Connection(f"127.0.0.1:{serve(session)}", Reader(), None)
    line.call(Ready(1))
    assert not gone.is_set()
    line.close()
    assert gone.wait(30)
    assert not alive[0]()


def test_one_stream_too_many_is_busy(serve, connect):
    port = serve(echo, sessions=2)
    lines = [connect(port) for _ in range(2)]
    for line in lines:
        line.call(Ready(1))
    with pytest.raises(TransportError) as caught:
        connect(port).call(Ready(1))
    assert caught.value.code == "busy"
    lines[0].finish(Heard())
    assert lines[1].call(Ready(3)).turn == 3


def test_a_connection_can_be_closed_while_its_reply_is_waited_for(serve):
    asked, end = threading.Event(), threading.Event()

    def session(_peer, requests):
        next(requests)
        asked.set()
        end.wait(10)
        yield from ()

    line = Connection(f"127.0.0.1:{serve(session)}", Reader(), None)
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(line.call, Ready(1))
        assert asked.wait(10)
        line.close()
        with pytest.raises(TransportError):
            reply.result(10)
        end.set()


def test_a_server_that_is_not_there_may_come(connect):
    with pytest.raises(TransportError, match=r"127\.0\.0\.1:9: ") as caught:
        connect(9).call(Ready(1))
    assert caught.value.code == "interrupted"


def test_a_host_that_cannot_be_found_may_come():
    line = Connection("no-such-host.invalid:7443", Reader(), None)
    with contextlib.closing(line), pytest.raises(TransportError, match="invalid"):
        line.call(Ready(1))


def test_a_server_of_something_else_will_not_help(connect):
    other = grpc.server(ThreadPoolExecutor(1))
    port = other.add_insecure_port("127.0.0.1:0")
    other.start()
    try:
        with pytest.raises(RemoteError, match="Method not found"):
            connect(port).call(Ready(1))
    finally:
        other.stop(None).wait()


def test_stopping_breaks_what_is_open_and_frees_the_port(connect):
    server = SessionServer(echo, Reader, credentials=None, max_sessions=2)
    port = server.bind("127.0.0.1:0")
    server.start()
    line = connect(port)
    line.call(Ready(1))
    server.stop(0.05)
    with pytest.raises(TransportError):
        line.call(Ready(2))
    again = SessionServer(echo, Reader, credentials=None, max_sessions=2)
    assert again.bind(f"127.0.0.1:{port}") == port
    again.stop(0.05)


def test_bytes_that_are_no_message_are_refused(serve):
    with grpc.insecure_channel(f"127.0.0.1:{serve(echo)}") as channel:
        call = channel.stream_stream(SESSION)(iter([b"\xff\xff"]))
        refusal = Reader().feed(next(call))
    assert refusal.code == "unknown-message"


def test_a_reply_that_is_no_message_is_an_error_of_protocol(connect, plain_server):
    def nonsense(_frames, _context):
        yield b"\xff"

    with plain_server(SESSION, nonsense) as address:
        line = connect(address.rpartition(":")[2])
        with pytest.raises(ProtocolError, match="no message begins"):
            line.call(Ready(1))


@pytest.fixture
def tls(tmp_path):
    folder = CertificateFolder(tmp_path / "tls")
    folder.make_authority()
    folder.make_server()
    folder.make_client("alice")
    return folder.path


def test_the_name_of_a_peer_is_its_certificates(serve, connect, tls):
    names = []

    def session(peer, requests):
        names.append(peer.name)
        yield from echo(peer, requests)

    port = serve(session, credentials=server_credentials(TlsFiles.of_server(tls)))
    line = connect(port, channel_credentials(TlsFiles.of_client(tls, "alice")))
    assert line.call(Finished("x")) == Finished("x")
    assert names == ["alice"]
