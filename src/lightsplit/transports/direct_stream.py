"""A stream on gRPC's core, in the caller's own thread.

    send ──► [gRPC's core] ──► receive

gRPC's public interface for a stream in both directions takes requests from an iterator
in one thread and gives replies through another (``threaded_stream``). Where a request
is always followed by its reply, that is five wake-ups of a thread for nothing; without
them a small step is a sixth quicker, and no thread is left behind at the end.

What is called here gRPC keeps for itself: it is what its own single-threaded streams
of replies are made of (``ChannelOptions.SingleThreadedUnaryStream``), the same from
grpcio 1.66 to 1.85. Where it is not there, making a stream raises AttributeError or
TypeError, and the other one is to be used.
"""

import threading
from typing import Any

import grpc
from grpc._cython import cygrpc  # type: ignore[attr-defined]

from lightsplit.transports.stream import StreamEndedError

_CODES = {code.value[0]: code for code in grpc.StatusCode}
_NO_FLAGS = 0


class DirectStream:
    """Frames to and from one method of a server; one thread at a time.

    Args:
        channel: to the server; it is closed with the stream.
        method: that takes a stream of frames and returns one.
    """

    def __init__(self, channel: grpc.Channel, method: str) -> None:
        self._channel = channel
        first = (
            cygrpc.SendInitialMetadataOperation(None, _NO_FLAGS),
            cygrpc.ReceiveInitialMetadataOperation(_NO_FLAGS),
            cygrpc.ReceiveStatusOnClientOperation(_NO_FLAGS),
        )
        self._call = channel._channel.segregated_call(  # type: ignore[attr-defined]
            cygrpc.PropagationConstants.GRPC_PROPAGATE_DEFAULTS,
            method.encode(),
            None,  # host
            None,  # deadline
            None,  # metadata
            None,  # credentials of the call
            tuple(((operation,), None) for operation in first),
        )
        self._due = len(first)  # events: gRPC frees the call with the last of them
        self._is_sending = self._is_receiving = False
        self._frame: bytes | None = None
        self._ended: StreamEndedError | None = None
        self._lock = threading.Lock()  # two threads may not wait for events

    def send(self, frame: bytes) -> None:
        """Send a frame, once the one before it is on its way."""
        with self._lock:
            while self._is_sending and self._ended is None:
                self._take_event()
            operation = cygrpc.SendMessageOperation(frame, _NO_FLAGS)
            self._is_sending = self._begin(operation)

    def receive(self) -> bytes:
        """Wait for a frame and return it."""
        with self._lock:
            self._is_receiving = self._begin(cygrpc.ReceiveMessageOperation(_NO_FLAGS))
            while self._is_receiving:
                self._take_event()
            frame, self._frame = self._frame, None
            if frame is not None:
                return frame
            while self._ended is None:
                self._take_event()
            raise self._ended

    def end(self) -> None:
        """Send nothing more; the server may still reply."""
        with self._lock:
            self._begin(cygrpc.SendCloseFromClientOperation(_NO_FLAGS))

    def close(self) -> None:
        """End the stream in both directions; whoever waits for a frame hears of it."""
        self._call.cancel(cygrpc.StatusCode.cancelled, "closed here")
        with self._lock:
            while self._due:
                self._take_event()
        self._channel.close()

    def _begin(self, operation: Any) -> bool:
        """Begin an operation, if the stream has not ended."""
        is_begun = self._ended is None and self._call.operate((operation,), None)
        self._due += is_begun
        return bool(is_begun)

    def _take_event(self) -> None:
        """Wait until an operation is done; signals are seen to in between.

        What a signal's handler raises ends the stream: gRPC has freed the call if it
        was waiting. Events are counted before they are waited for, so that whatever
        comes in between, none is waited for that will not come.
        """
        self._due -= 1
        try:
            for operation in self._call.next_event().batch_operations:
                self._note(operation)
        except BaseException:
            self._due = 0
            self._ended = StreamEndedError(grpc.StatusCode.CANCELLED, "interrupted")
            raise

    def _note(self, operation: Any) -> None:
        kind = operation.type()
        if kind == cygrpc.OperationType.send_message:
            self._is_sending = False
        elif kind == cygrpc.OperationType.receive_message:
            self._is_receiving, self._frame = False, operation.message()
        elif kind == cygrpc.OperationType.receive_status_on_client:
            code = _CODES.get(operation.code(), grpc.StatusCode.UNKNOWN)
            self._ended = StreamEndedError(code, operation.details() or str(code))
