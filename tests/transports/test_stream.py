"""The laws of a client's stream, on a real socket."""

import contextlib
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from lightsplit.transports.stream import Stream, StreamEndedError

METHOD = "/test.Stream/Talk"
FRAMES = [b"one", b"", bytes(2**20), b"four"]


@pytest.fixture
def serve(plain_server):
    """Return what serves a method until the end of the test and gives its address."""
    with contextlib.ExitStack() as stack:
        yield lambda *talk: stack.enter_context(plain_server(METHOD, *talk))


@pytest.fixture
def connect():
    """Return what opens a stream that is closed after the test."""
    with contextlib.ExitStack() as stack:

        def connect(address):
            stream = Stream(grpc.insecure_channel(address), METHOD)
            stack.callback(stream.close)
            return stream

        yield connect


def echo(frames, _context):
    yield from frames


def silent(frames, _context):
    next(frames)
    next(frames, None)  # until the client is gone
    yield from ()


def ending(stream):
    with pytest.raises(StreamEndedError) as caught:
        stream.receive()
    return caught.value


def test_frames_come_back_in_order_one_by_one(serve, connect):
    stream = connect(serve(echo))
    for frame in FRAMES:
        stream.send(frame)
        assert stream.receive() == frame


def test_frames_may_be_sent_before_any_is_received(serve, connect):
    stream = connect(serve(echo))
    for frame in FRAMES:
        stream.send(frame)
    assert [stream.receive() for _ in FRAMES] == FRAMES


def test_a_server_still_replies_to_a_client_that_sends_no_more(serve, connect):
    def count(frames, _context):
        yield str(len(list(frames))).encode()

    stream = connect(serve(count))
    for frame in FRAMES:
        stream.send(frame)
    stream.end()
    assert stream.receive() == b"4"
    assert ending(stream).code is grpc.StatusCode.OK


def test_every_receive_after_the_end_reports_the_end(serve, connect):
    def once(frames, _context):
        yield next(frames)

    stream = connect(serve(once))
    stream.send(b"x")
    assert stream.receive() == b"x"
    for _ in range(3):
        assert ending(stream).code is grpc.StatusCode.OK
        stream.send(b"y")  # is no error by itself


def test_frames_before_an_error_arrive_and_so_does_the_error(serve, connect):
    def fail(frames, context):
        yield next(frames)
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "not you")

    stream = connect(serve(fail))
    stream.send(b"x")
    assert stream.receive() == b"x"
    end = ending(stream)
    assert (end.code, end.details) == (grpc.StatusCode.PERMISSION_DENIED, "not you")


def test_an_unreachable_server_ends_the_stream_with_a_reason(connect):
    stream = connect("127.0.0.1:9")
    stream.send(b"x")
    end = ending(stream)
    assert end.code is grpc.StatusCode.UNAVAILABLE
    assert "Failed to connect" in end.details


def test_a_server_that_goes_ends_the_stream(connect, plain_server):
    with plain_server(METHOD, echo) as address:
        stream = connect(address)
        stream.send(b"x")
        assert stream.receive() == b"x"
    assert ending(stream).code is not grpc.StatusCode.OK
    stream.send(b"y")
    assert ending(stream).code is not grpc.StatusCode.OK


def test_whoever_waits_hears_that_the_stream_is_closed(serve, connect):
    stream = connect(serve(silent))
    stream.send(b"x")
    with ThreadPoolExecutor(1) as pool:
        end = pool.submit(ending, stream)
        time.sleep(0.1)
        stream.close()
        assert end.result(120).code is grpc.StatusCode.CANCELLED


@pytest.mark.parametrize("sent", [0, 1, 3])
def test_closing_leaves_no_thread_and_can_be_done_twice(sent, serve, connect):
    # A thread that is left to the interpreter's end can take a lock with it.
    address = serve(silent)
    before = set(threading.enumerate())
    stream = connect(address)
    for _ in range(sent):
        stream.send(b"x")
    stream.close()
    stream.close()
    assert not _of_clients(set(threading.enumerate()) - before)


def _of_clients(threads):
    return [thread for thread in threads if not thread.name.startswith("server")]


class _SignalledError(Exception):
    pass


@pytest.fixture
def signalled():
    """Return what has this thread interrupted a little later."""

    def interrupt(_number, _frame):
        raise _SignalledError

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_signals_handler_gets_through_to_a_client_that_waits(
    serve, connect, signalled
):
    stream = connect(serve(silent))
    stream.send(b"x")
    signalled()
    with pytest.raises(_SignalledError):
        stream.receive()


def test_closing_an_interrupted_stream_leaves_no_thread(serve, connect, signalled):
    address = serve(silent)
    before = set(threading.enumerate())
    stream = connect(address)
    stream.send(b"x")
    signalled()
    with pytest.raises(_SignalledError):
        stream.receive()
    stream.close()
    assert not _of_clients(set(threading.enumerate()) - before)


@pytest.mark.slow
def test_a_client_that_is_busy_still_answers_the_servers_pings(serve, connect):
    options = [
        ("grpc.keepalive_time_ms", 500),
        ("grpc.http2.ping_timeout_ms", 5000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]
    stream = connect(serve(echo, options))
    stream.send(b"x")
    assert stream.receive() == b"x"
    time.sleep(7)  # nothing of ours asks gRPC for anything
    stream.send(b"y")
    assert stream.receive() == b"y"
