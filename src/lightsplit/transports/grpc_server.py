"""Sessions over gRPC, the server's end: one bidirectional stream per client.

    frame ─► reader ─► message ─► session.handle ─► reply ─► frames ─► session.replied

gRPC carries frames as bytes; ``protocol.frames`` reads and writes them. Every stream
has a thread, which sleeps while its client waits for a turn.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import grpc

from lightsplit.errors import ConfigError, LightSplitError
from lightsplit.protocol import Message
from lightsplit.protocol.frames import (
    PART_BYTES,
    Reader,
    refusal_of,
    to_frames,
)
from lightsplit.transports.credentials import peer_name, peer_serial
from lightsplit.transports.descriptors import connection_limit, raise_limit
from lightsplit.transports.grpc_errors import obstacle
from lightsplit.transports.peers import OpenSession, Peer

SESSION = "/lightsplit.v1.LightSplit/Session"
MESSAGE_OPTIONS = [
    ("grpc.max_send_message_length", PART_BYTES + 65536),
    ("grpc.max_receive_message_length", PART_BYTES + 65536),
]
KEEP_ALIVE_OPTIONS = [
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 20_000),  # for unacknowledged bytes
    ("grpc.http2.ping_timeout_ms", 20_000),  # for an unanswered ping
    ("grpc.keepalive_permit_without_calls", 1),
]
NO_COMPRESSION = ("grpc.compression_enabled_algorithms_bitset", 1)  # identity alone
_OPTIONS = [
    *MESSAGE_OPTIONS,
    *KEEP_ALIVE_OPTIONS,
    NO_COMPRESSION,
    ("grpc.so_reuseport", 0),
    ("grpc.server_handshake_timeout_ms", 5_000),
    ("grpc.max_connection_idle_ms", 10_000),  # without a stream
    ("grpc.max_concurrent_streams", 16),  # of one connection
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
]


class SessionServer:
    """Listens on an address and opens a session for every stream.

    Args:
        open_session: makes the session that answers a client.
        make_reader: makes a stream's reader of frames, with the contract's limits.
        credentials: certificates for mutual TLS; None means plain text.
        max_sessions: most streams at a time; a further one is refused as busy.
        refused: called with the code of every refusal.
    """

    def __init__(
        self,
        open_session: OpenSession,
        make_reader: Callable[[], Reader],
        *,
        credentials: grpc.ServerCredentials | None,
        max_sessions: int,
        refused: Callable[[str], None] = lambda _code: None,
    ) -> None:
        self._open_session = open_session
        self._make_reader = make_reader
        self._refused = refused
        self._credentials = credentials
        self._pool = ThreadPoolExecutor(max_sessions, thread_name_prefix="session")
        raise_limit(max_sessions)
        most = connection_limit()
        self._server = grpc.server(
            self._pool,
            options=[*_OPTIONS, ("grpc.max_allowed_incoming_connections", most)],
            maximum_concurrent_rpcs=max_sessions,
        )
        handler: grpc.RpcMethodHandler[bytes, bytes] = (
            grpc.stream_stream_rpc_method_handler(self._handle)
        )
        _, service, method = SESSION.split("/")
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(service, {method: handler})]
        )

    def bind(self, address: str) -> int:
        """Bind ``address`` (host:port, 0 for any port) and return the port.

        Clients that connect from now on wait until ``start``.
        """
        try:
            if self._credentials is None:
                return self._server.add_insecure_port(address)
            return self._server.add_secure_port(address, self._credentials)
        except RuntimeError as error:
            reason = obstacle(address)
            raise ConfigError(f"cannot listen on {address}: {reason}") from error

    def start(self) -> None:
        """Begin to answer clients."""
        self._server.start()

    def stop(self, grace_seconds: float = 1.0) -> None:
        """End all sessions and free the port."""
        self._server.stop(grace_seconds).wait()
        self._pool.shutdown(wait=True)

    def _handle(
        self, frames: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        """Answer one stream; gRPC has sent a frame when it asks for the next one."""
        reader = _StreamReader(self._make_reader())
        try:
            session = self._open_session(self._peer(context, reader))
            try:
                for frame in _until_gone(frames):
                    message = reader.feed(frame)
                    if message is None:
                        continue
                    reply = session.handle(message)
                    if reply is None:
                        return
                    yield from to_frames(reply)
                    session.replied()
            finally:
                session.close()
        except LightSplitError as error:
            refusal = refusal_of(error)
            self._refused(refusal.code)
            yield from to_frames(refusal)

    def _peer(self, context: grpc.ServicerContext, reader: "_StreamReader") -> Peer:
        is_known = self._credentials is not None
        return Peer(
            peer_name(context) if is_known else None,
            context.cancel,
            context.is_active,
            context.add_callback,
            reader.allow_sides,
            peer_serial(context) if is_known else None,
        )


class _StreamReader:
    """Reads the frames of one stream; sealed sides are refused before a turn."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._agreed = reader.limits
        short = reader.limits.control_bytes
        reader.limits = replace(reader.limits, side_bytes=short)

    def feed(self, frame: bytes) -> Message | None:
        """Return the message that ``frame`` completes, or None."""
        return self._reader.feed(frame)

    def allow_sides(self) -> None:
        """Apply the limits of the contract from now on."""
        self._reader.limits = self._agreed


def _until_gone(frames: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the frames of a stream until it ends, cleanly or not."""
    try:
        yield from frames
    except grpc.RpcError:  # the client is gone
        return
