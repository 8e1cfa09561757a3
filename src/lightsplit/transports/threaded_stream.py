"""A stream by gRPC's public interface: its threads stand between us and the wire.

    send ──► queue ──► thread that feeds the call ──► [gRPC] ──► thread of the channel ──► receive

Each of the arrows wakes a thread. ``direct_stream`` has none of them; this is for a
version of grpcio that does not have what it calls.
"""  # noqa: E501

import queue
import threading
from collections.abc import Iterator

import grpc

from lightsplit.transports.stream import StreamEndedError

_CLOSING_SECONDS = 5.0  # it takes milliseconds


class ThreadedStream:
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

    def send(self, frame: bytes) -> None:
        """Let gRPC send a frame; it does so in a thread of its own."""
        self._frames.put(frame)

    def receive(self) -> bytes:
        """Wait for a frame and return it."""
        try:
            return next(self._replies)
        except StopIteration:
            raise StreamEndedError(grpc.StatusCode.OK, "") from None
        except grpc.RpcError as error:
            code, details = self._replies.code(), self._replies.details()
            raise StreamEndedError(code, details or str(code)) from error

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
