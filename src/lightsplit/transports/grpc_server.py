"""Sessions over gRPC, the server's end: one bidirectional stream per client.

Frames go in and out as bytes; ``protocol.wire`` reads and writes them, so gRPC's own
serialisation is not used. A stream keeps one thread, which sleeps while its client
waits.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import grpc

from lightsplit.errors import ConfigError, LightSplitError
from lightsplit.protocol import Message
from lightsplit.protocol.wire import (
    PART_BYTES,
    Limits,
    Reader,
    refusal_of,
    to_frames,
)
from lightsplit.transports.credentials import peer_name
from lightsplit.transports.grpc_errors import obstacle
from lightsplit.transports.peers import Peer, Session

SESSION = "/lightsplit.v1.LightSplit/Session"
MESSAGE_OPTIONS = [
    ("grpc.max_send_message_length", PART_BYTES + 65536),
    ("grpc.max_receive_message_length", PART_BYTES + 65536),
]
KEEP_ALIVE_OPTIONS = [
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 20_000),  # for bytes that nobody takes
    ("grpc.http2.ping_timeout_ms", 20_000),  # for a ping that nobody answers
    ("grpc.keepalive_permit_without_calls", 1),
]
_OPTIONS = [
    *MESSAGE_OPTIONS,
    *KEEP_ALIVE_OPTIONS,
    ("grpc.so_reuseport", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
]


class SessionServer:
    """Listens on an address and gives every stream to ``session``.

    Args:
        session: turns a client's messages into replies.
        make_reader: of frames, with the limits of the contract; one per stream.
        credentials: of mutual TLS; None is plain text.
        max_sessions: streams at a time; one more is turned away.
    """

    def __init__(
        self,
        session: Session,
        make_reader: Callable[[], Reader],
        *,
        credentials: grpc.ServerCredentials | None,
        max_sessions: int,
    ) -> None:
        self._session = session
        self._make_reader = make_reader
        self._credentials = credentials
        self._pool = ThreadPoolExecutor(max_sessions, thread_name_prefix="session")
        self._server = grpc.server(
            self._pool, options=_OPTIONS, maximum_concurrent_rpcs=max_sessions
        )
        handler: grpc.RpcMethodHandler[bytes, bytes] = (
            grpc.stream_stream_rpc_method_handler(self._handle)
        )
        _, service, method = SESSION.split("/")
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(service, {method: handler})]
        )

    def bind(self, address: str) -> int:
        """Take ``address`` (host:port, 0 for any port) and return the port.

        Who connects from now on waits until ``start``.
        """
        try:
            if self._credentials is None:
                return self._server.add_insecure_port(address)
            return self._server.add_secure_port(address, self._credentials)
        except RuntimeError as error:
            reason = obstacle(address)
            raise ConfigError(f"cannot listen on {address}: {reason}") from error

    def start(self) -> None:
        """Answer whoever comes."""
        self._server.start()

    def stop(self, grace_seconds: float = 1.0) -> None:
        """End all sessions and free the port."""
        self._server.stop(grace_seconds).wait()
        self._pool.shutdown(wait=True)

    def _handle(
        self, frames: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        reader = self._make_reader()
        agreed, reader.limits = reader.limits, _at_the_door(reader.limits)
        try:
            name = peer_name(context) if self._credentials is not None else None
            peer = Peer(
                name,
                context.cancel,
                context.is_active,
                context.add_callback,
                lambda: setattr(reader, "limits", agreed),
            )
            for message in self._session(peer, _read(reader, frames)):
                yield from to_frames(message)
        except LightSplitError as error:
            yield from to_frames(refusal_of(error))


def _at_the_door(limits: Limits) -> Limits:
    """Return limits without sealed sides, for a client that has no turn yet."""
    return replace(limits, side_bytes=limits.control_bytes)


def _read(reader: Reader, frames: Iterator[bytes]) -> Iterator[Message]:
    try:
        for frame in frames:
            message = reader.feed(frame)
            if message is not None:
                yield message
    except grpc.RpcError:  # the client is gone
        return
