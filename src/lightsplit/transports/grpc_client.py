"""The client's end of a session over gRPC: one request, one reply, on one stream."""

from contextlib import suppress

import grpc

from lightsplit.protocol import Message
from lightsplit.protocol.control import Refusal
from lightsplit.protocol.frames import Reader, error_of, to_frames
from lightsplit.transports.grpc_errors import failure_of
from lightsplit.transports.grpc_server import (
    KEEP_ALIVE_OPTIONS,
    MESSAGE_OPTIONS,
    NO_COMPRESSION,
    SESSION,
)
from lightsplit.transports.stream import Stream, StreamEndedError

_OPTIONS = [
    *MESSAGE_OPTIONS,
    *KEEP_ALIVE_OPTIONS,
    NO_COMPRESSION,
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    # Open a new connection: sharing another channel's would also share its back-off.
    ("grpc.use_local_subchannel_pool", 1),
]


class Connection:
    """One stream to a server.

    Args:
        address: host:port.
        reader: reads the server's frames within the limits of the contract.
        credentials: certificates for mutual TLS; None means plain text.
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
        """Send a message and return the reply.

        Raises:
            ExchangeError: the server refused the message, or the stream ended.
        """
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
        """End the stream at once, even in the middle of an exchange."""
        self._stream.close()

    def _send(self, message: Message) -> None:
        for frame in to_frames(message):
            self._stream.send(frame)

    def _next_frame(self) -> bytes:
        try:
            return self._stream.receive()
        except StreamEndedError as end:
            raise failure_of(self._address, end) from end
