"""What a connection needs of gRPC: frames out, frames in, and how it ended."""

from typing import Protocol

import grpc


class StreamEndedError(Exception):
    """The server will send no more frames.

    Attributes:
        code: gRPC's; OK where the server closed the stream in good order.
        details: in gRPC's words.
    """

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(code, details)
        self.code = code
        self.details = details


class Stream(Protocol):
    """Frames to and from one method of a server."""

    def send(self, frame: bytes) -> None:
        """Send a frame; whether it can be is told by the next ``receive``."""
        ...

    def receive(self) -> bytes:
        """Wait for a frame and return it.

        Raises:
            StreamEndedError: there will be none.
        """
        ...

    def end(self) -> None:
        """Send nothing more; the server may still reply."""
        ...

    def close(self) -> None:
        """End the stream in both directions, whatever its state, and its channel."""
        ...
