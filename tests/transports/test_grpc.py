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
from lightsplit.protocol.control import Finished, Grant, Heard, Ready, TurnDone
from lightsplit.protocol.frames import PART_BYTES, Limits, Reader
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
    """Return what serves sessions and gives the port."""
    with contextlib.ExitStack() as stack:

        def serve(
            open_session, *, sessions=4, credentials=None, host="127.0.0.1", **limits
        ):
            server = SessionServer(
                open_session,
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


class Echo:
    """A session that sends messages back and ends with Heard; it notes its calls."""

    def __init__(self, peer):
        self.peer = peer
        self.calls = []
        self.is_closed = threading.Event()

    def handle(self, message):
        self.calls.append(message)
        if isinstance(message, Ready):
            return Grant(message.batches, 0, 0)
        return None if message == Heard() else message

    def replied(self):
        self.calls.append("replied")

    def close(self):
        self.calls.append("closed")
        self.is_closed.set()


class Open(Echo):
    """An echo that takes sealed sides."""

    def __init__(self, peer):
        super().__init__(peer)
        peer.allow_sides()


def kept(sessions, kind=Echo):
    """Return what opens sessions of a kind and puts them into a list."""

    def open_session(peer):
        sessions.append(kind(peer))
        return sessions[-1]

    return open_session


def test_every_message_is_answered_in_order(serve, connect):
    line = connect(serve(Echo))
    assert [line.call(Ready(n)).turn for n in range(5)] == list(range(5))


def test_a_long_message_travels_in_parts(serve, connect):
    line = connect(serve(Open))
    assert line.call(TurnDone(1, BIG)) == TurnDone(1, BIG)
    assert line.call(Ready(2)).turn == 2


def test_a_side_is_not_even_read_before_it_is_allowed(serve, connect):
    line = connect(serve(Echo))
    with pytest.raises(RemoteError, match="at most 65536 bytes") as caught:
        line.call(TurnDone(1, BIG))
    assert caught.value.code == "too-large"


def test_the_agreed_limits_hold_once_sides_are_allowed(serve, connect):
    line = connect(serve(Open, side_bytes=1000))
    assert line.call(TurnDone(1, bytes(900))).turn == 1
    with pytest.raises(RemoteError, match="at most 1000 bytes"):
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
    class Refusing(Echo):
        def handle(self, _message):
            raise raised

    sessions = []
    with pytest.raises(expected, match=str(raised)) as caught:
        connect(serve(kept(sessions, Refusing))).call(Ready(1))
    assert caught.value.code == getattr(raised, "code", "refused")
    assert sessions[0].calls == ["closed"]


def test_a_session_that_ends_is_a_broken_exchange(serve, connect):
    line = connect(serve(Echo))
    line.call(Ready(1))
    with pytest.raises(TransportError, match="closed the connection"):
        line.call(Heard())


def test_work_that_can_wait_is_done_when_the_reply_is_on_its_way(serve, connect):
    sessions = []
    line = connect(serve(kept(sessions)))
    line.call(Ready(1))
    line.call(Finished("x"))
    line.finish(Heard())
    expected = [Ready(1), "replied", Finished("x"), "replied", Heard(), "closed"]
    assert sessions[0].calls == expected


def test_a_session_can_be_cancelled_from_outside(serve, connect):
    sessions = []
    line = connect(serve(kept(sessions)))
    line.call(Ready(1))
    peer = sessions[0].peer
    assert peer.is_alive()
    peer.cancel()
    with pytest.raises(TransportError):
        line.call(Ready(2))
    deadline = time.monotonic() + 120
    while peer.is_alive():  # gRPC takes note of it a moment later
        assert time.monotonic() < deadline, "the session is still alive"
        time.sleep(0.01)


@pytest.mark.parametrize("is_orderly", [True, False])
def test_a_session_closes_once_when_its_client_leaves_in_order_or_not(
    is_orderly, serve
):
    sessions = []
    line = Connection(f"127.0.0.1:{serve(kept(sessions))}", Reader(), None)
    line.call(Ready(1))
    if is_orderly:
        line.finish(Heard())
        assert Heard() in sessions[0].calls  # already: finish waits for it
    line.close()
    assert sessions[0].is_closed.wait(120)
    assert (Heard() in sessions[0].calls) == is_orderly
    assert sessions[0].calls.count("closed") == 1


def test_a_waiter_learns_that_its_client_is_gone(serve):
    gone, sessions = threading.Event(), []
    line = Connection(f"127.0.0.1:{serve(kept(sessions))}", Reader(), None)
    line.call(Ready(1))
    peer = sessions[0].peer
    peer.when_gone(gone.set)
    assert not gone.is_set()
    line.close()
    assert gone.wait(120)
    assert not peer.is_alive()


def test_one_stream_too_many_is_busy(serve, connect):
    port = serve(Echo, sessions=2)
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

    class Waiting(Echo):
        def handle(self, _message):
            asked.set()
            end.wait(120)

    line = Connection(f"127.0.0.1:{serve(Waiting)}", Reader(), None)
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(line.call, Ready(1))
        assert asked.wait(120)
        line.close()
        with pytest.raises(TransportError):
            reply.result(120)
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


def test_stopping_ends_open_streams_and_frees_the_port(connect):
    server = SessionServer(Echo, Reader, credentials=None, max_sessions=2)
    port = server.bind("127.0.0.1:0")
    server.start()
    line = connect(port)
    line.call(Ready(1))
    server.stop(0.05)
    with pytest.raises(TransportError):
        line.call(Ready(2))
    again = SessionServer(Echo, Reader, credentials=None, max_sessions=2)
    assert again.bind(f"127.0.0.1:{port}") == port
    again.stop(0.05)


def test_bytes_that_are_no_message_are_refused(serve):
    with grpc.insecure_channel(f"127.0.0.1:{serve(Echo)}") as channel:
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
    sessions = []
    credentials = server_credentials(TlsFiles.of_server(tls))
    port = serve(kept(sessions), credentials=credentials)
    line = connect(port, channel_credentials(TlsFiles.of_client(tls, "alice")))
    assert line.call(Finished("x")) == Finished("x")
    assert sessions[0].peer.name == "alice"
