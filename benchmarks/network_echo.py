"""A bare gRPC echo with the same certificates: what any protocol here must pay.

    python -m benchmarks.network_echo CERTS     child process: the echo server

The server sends every frame back on one bidirectional stream of bytes. Both ends use
gRPC's public interface, with the options, the mutual TLS and the stream of LightSplit's
own connection.
"""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from benchmarks.network_children import end_with_parent
from benchmarks.network_runs import Line
from lightsplit.transports.credentials import (
    TlsFiles,
    channel_credentials,
    server_credentials,
)
from lightsplit.transports.grpc_server import MESSAGE_OPTIONS
from lightsplit.transports.stream import Stream

METHOD = "/bench.Echo/Echo"


class Echo:
    """One stream to the echo server."""

    def __init__(self, line: Line, name: str) -> None:
        credentials = channel_credentials(TlsFiles.of_client(line.certs, name))
        channel = grpc.secure_channel(
            line.address, credentials, options=MESSAGE_OPTIONS
        )
        self._stream = Stream(channel, METHOD)
        self.close = self._stream.close

    def round_trip(self, frame: bytes) -> None:
        """Send ``frame`` and wait until it is back."""
        self._stream.send(frame)
        if len(self._stream.receive()) != len(frame):
            raise RuntimeError("the echo lost bytes")


def main(certs: str) -> None:
    """Serve until the parent ends this process."""
    end_with_parent()
    server = grpc.server(ThreadPoolExecutor(2), options=MESSAGE_OPTIONS)
    handler: grpc.RpcMethodHandler[bytes, bytes] = (
        grpc.stream_stream_rpc_method_handler(_echo)
    )
    _, service, method = METHOD.split("/")
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(service, {method: handler})]
    )
    credentials = server_credentials(TlsFiles.of_server(Path(certs)))
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    print(port, flush=True)
    threading.Event().wait()


def _echo(frames: Iterator[bytes], _context: grpc.ServicerContext) -> Iterator[bytes]:
    yield from frames


if __name__ == "__main__":
    main(*sys.argv[1:])
