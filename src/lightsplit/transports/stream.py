"""The client's stream of frames, on gRPC's public interface.

    send ──► queue ──► gRPC's thread ──► [network] ──► gRPC's channel ──► receive

gRPC takes the requests of a stream from an iterator, which it runs in a thread of its
own. The queue is that iterator's source, so that callers can simply send.
"""

import queue
import threading
from collections.abc import Iterator

import grpc

_CLOSING_SECONDS = 5.0  # closing usually takes milliseconds


class StreamEndedError(Exception):
    """The server will send no more frames.

    Attributes:
        code: gRPC's status; OK if the server closed the stream in good order.
        details: the reason in gRPC's words.
    """

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(code, details)
        self.code = code
        self.details = details


class Stream:
    """Frames to and from one method of a server.

    Args:
        channel: the channel to the server; the stream closes it.
        method: the method's path; it takes a stream of frames and returns one.
    """

    def __init__(self, channel: grpc.Channel, method: str) -> None:
        self._to_server = channel
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._sender: threading.Thread | None = None
        self._is_sending = threading.Event()
        call: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(
            method
        )
        self._replies = call(self._requests())

    def send(self, frame: bytes) -> None:
        """Queue a frame for sending; if it cannot be sent, ``receive`` raises."""
        self._frames.put(frame)

    def receive(self) -> bytes:
        """Wait for a frame and return it.

        Raises:
            StreamEndedError: no more frames will come.
        """
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
        """End the stream in both directions and wait for gRPC's threads.

        If one of them still runs when the interpreter exits, it may die holding a lock
        that the interpreter then waits for, and the process hangs.
        """
        is_over = threading.Event()
        if not self._replies.add_callback(is_over.set):
            is_over.set()  # the call had ended before
        self.end()
        self._to_server.close()
        is_over.wait(_CLOSING_SECONDS)
        self._is_sending.wait(_CLOSING_SECONDS)
        if self._sender is not None:
            self._sender.join(_CLOSING_SECONDS)

    def _requests(self) -> Iterator[bytes]:
        self._sender = threading.current_thread()
        self._is_sending.set()
        while (frame := self._frames.get()) is not None:
            yield frame
