"""A session over gRPC, the client's end: one request, one reply, on one stream."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import grpc

from lightsplit.errors import TransportError
from lightsplit.protocol import Message
from lightsplit.protocol.control import Refusal
from lightsplit.protocol.wire import Reader, error_of, to_frames
from lightsplit.transports.grpc_errors import failure_of
from lightsplit.transports.grpc_server import MESSAGE_OPTIONS, SESSION

_OPTIONS = [
    *MESSAGE_OPTIONS,
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    # A new connection is a new one: no other channel's, and no waiting for its mood.
    ("grpc.use_local_subchannel_pool", 1),
]
_CLOSING_SECONDS = 5.0  # it takes milliseconds


class Stream:
    """Frames to and from one method of a server.

    Args:
        channel: to the server; it is closed with the stream.
        method: that takes a stream of frames and returns one.
    """

    def __init__(self, channel: grpc.Channel, method: str) -> None:
        self._channel = channel
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._feeder: threading.Thread | None = None
        call: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(
            method
        )
        self._replies = call(self._requests())
        self.receive: Callable[[], bytes] = self._replies.__next__

    def send(self, frame: bytes) -> None:
        """Let gRPC send a frame; it does so in a thread of its own."""
        self._frames.put(frame)

    def end(self) -> None:
        """Send nothing more; the server may still reply."""
        self._frames.put(None)

    def close(self) -> None:
        """End the stream in both directions, and the threads that served it.

        A thread that gRPC left running when the interpreter ends may take a lock with
        it for which the interpreter then waits for ever.
        """
        over = threading.Event()
        if not self._replies.add_callback(over.set):
            over.set()
        self.end()
        self._channel.close()
        over.wait(_CLOSING_SECONDS)
        if self._feeder is not None:
            self._feeder.join(_CLOSING_SECONDS)

    def _requests(self) -> Iterator[bytes]:
        self._feeder = threading.current_thread()
        yield from iter(self._frames.get, None)


class Connection:
    """One stream to a server.

    Args:
        address: host:port.
        reader: of frames, with the limits of the contract.
        credentials: of mutual TLS; None is plain text.
    """

    def __init__(
        self,
        address: str,
        reader: Reader,
        credentials: grpc.ChannelCredentials | None,
    ) -> None:
        self._address = address
        self._reader = reader
        if credentials is None:
            channel = grpc.insecure_channel(address, options=_OPTIONS)
        else:
            channel = grpc.secure_channel(address, credentials, options=_OPTIONS)
        self._stream = Stream(channel, SESSION)

    def call(self, message: Message) -> Message:
        """Send a message and return the reply, or raise what went wrong."""
        self._send(message)
        while True:
            reply = self._reader.feed(self._next_frame())
            if isinstance(reply, Refusal):
                raise error_of(reply)
            if reply is not None:
                return reply

    def finish(self, last: Message) -> None:
        """Send a message that has no reply, and wait until the server has read it."""
        self._send(last)
        self._stream.end()
        with suppress(StopIteration, grpc.RpcError):
            while True:
                self._stream.receive()

    def close(self) -> None:
        """End the stream, whatever its state."""
        self._stream.close()

    def _send(self, message: Message) -> None:
        for frame in to_frames(message):
            self._stream.send(frame)

    def _next_frame(self) -> bytes:
        try:
            return self._stream.receive()
        except StopIteration:
            raise TransportError(
                f"{self._address}: the server closed the connection"
            ) from None
        except grpc.RpcError as error:
            raise failure_of(self._address, error) from error
