"""A session over gRPC, the client's end: one request, one reply, on one stream."""

from contextlib import suppress

import grpc

from lightsplit.protocol import Message
from lightsplit.protocol.control import Refusal
from lightsplit.protocol.wire import Reader, error_of, to_frames
from lightsplit.transports.grpc_errors import failure_of
from lightsplit.transports.grpc_server import (
    KEEP_ALIVE_OPTIONS,
    MESSAGE_OPTIONS,
    SESSION,
)
from lightsplit.transports.stream import Stream, StreamEndedError
from lightsplit.transports.threaded_stream import ThreadedStream

_OPTIONS = [
    *MESSAGE_OPTIONS,
    *KEEP_ALIVE_OPTIONS,
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    # A new connection is a new one: no other channel's, and no waiting for its mood.
    ("grpc.use_local_subchannel_pool", 1),
]


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
        self._stream = open_stream(channel, SESSION)

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
        with suppress(StreamEndedError):
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
        except StreamEndedError as end:
            raise failure_of(self._address, end) from end


def open_stream(channel: grpc.Channel, method: str) -> Stream:
    """Return a stream without threads where this grpcio can; else one with them."""
    try:
        from lightsplit.transports.direct_stream import DirectStream

        return DirectStream(channel, method)
    except (ImportError, AttributeError, TypeError):
        return ThreadedStream(channel, method)
