"""A client's own recording of its messages, on its own disk.

    header, frames of a request, frames of its reply │ header, frames, frames │ …

Every exchange is written as soon as it is over and then forgotten, so a recording takes
no memory, and a killed client leaves a file that ends with its last whole exchange. A
header says which step an exchange belongs to and how long it is: a reader skips what it
does not need.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from lightsplit.errors import ProtocolError, RunError
from lightsplit.protocol import (
    CodeMessage,
    Message,
    Reply,
    Request,
    Share,
    from_frames,
    to_frames,
)
from lightsplit.transports.middleware import Send

FILE_NAME = "sent.tape"
EVALUATION, CODE, GRADIENT = 0, 1, 2  # what an exchange is
_MODE = 0o600
_MAGIC = b"LST1"
_HEADER = struct.Struct("<4sBqqQQI")  # magic, what, client, step, two lengths, CRC
_LENGTH = struct.Struct("<I")  # of a frame


class Place(NamedTuple):
    """Where an exchange lies in a recording, and what it is.

    Attributes:
        what: EVALUATION, CODE or GRADIENT.
        client: the number of the client.
        step: of the client.
        start: of its frames in the file.
        request: bytes of the request's frames.
        reply: bytes of the reply's frames.
        crc: of both.
    """

    what: int
    client: int
    step: int
    start: int
    request: int
    reply: int
    crc: int


class Tape:
    """A mod that writes every exchange to a file.

    The file is made with the first exchange. One that exists is continued behind its
    last whole exchange.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._open: IO[bytes] | None = None

    def __call__(self, request: Request, call_next: Send) -> Reply:
        """Pass the request on, and write it down with its reply."""
        reply = call_next(request)
        if isinstance(request, Share):  # hidden numbers, which tell an audit nothing
            return reply
        try:
            self._write(_block(request, reply))
        except OSError as error:
            self.close()
            raise RunError(
                f"cannot record to {self.file}: {error.strerror}; what was recorded "
                "and this client's part are kept: make room and start the same "
                "command again, or start it without --record"
            ) from error
        return reply

    def close(self) -> None:
        """Close the file; the next exchange opens it again."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _write(self, block: bytes) -> None:
        if self._open is None:
            self._open = _opened(self.file)
        end = self._open.tell()
        try:
            _write_all(self._open, block)
        except OSError:
            _cut(self._open, end)
            raise


def places(file: Path) -> Iterator[Place]:
    """Yield every whole exchange of a recording, in its order."""
    try:
        with file.open("rb") as tape:
            yield from _places(tape, file)
    except FileNotFoundError as error:
        raise RunError(f"there is no recording {file}") from error


def read(file: Path, place: Place) -> tuple[Request, Reply]:
    """Return the exchange at ``place``."""
    with file.open("rb") as tape:
        tape.seek(place.start)
        data = tape.read(place.request + place.reply)
    if zlib.crc32(data) != place.crc:
        raise _damaged(file, place.start)
    try:
        request = from_frames(_frames(data[: place.request]))
        reply = from_frames(_frames(data[place.request :]))
    except (ProtocolError, struct.error) as error:
        raise _damaged(file, place.start) from error
    return request, reply  # type: ignore[return-value]


def _places(tape: IO[bytes], file: Path) -> Iterator[Place]:
    size, at = os.fstat(tape.fileno()).st_size, 0
    while at + _HEADER.size <= size:
        tape.seek(at)
        magic, what, client, step, request, reply, crc = _HEADER.unpack(
            tape.read(_HEADER.size)
        )
        if magic != _MAGIC:
            raise _damaged(file, at)
        start = at + _HEADER.size
        at = start + request + reply
        if at <= size:
            yield Place(what, client, step, start, request, reply, crc)


def _opened(file: Path) -> IO[bytes]:
    """Return the file, for its owner's eyes only, behind its last whole exchange."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_RDWR | os.O_CREAT, _MODE)
    tape = os.fdopen(handle, "r+b", buffering=0)
    end = 0
    for place in _places(tape, file):
        end = place.start + place.request + place.reply
    if end < os.fstat(handle).st_size:
        tape.truncate(end)  # a crash cut the last exchange short
    tape.seek(end)
    return tape


def _write_all(tape: IO[bytes], block: bytes) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[tape.write(rest) :]


def _cut(tape: IO[bytes], end: int) -> None:
    """Drop what was written of an exchange, if the file system lets us."""
    try:
        tape.truncate(end)
    except OSError:
        return  # a reader, and the next start, leave it out


def _block(request: Request, reply: Reply) -> bytes:
    asked, replied = _written(request), _written(reply)
    crc = zlib.crc32(replied, zlib.crc32(asked))
    facts = (_what(request), request.client, request.step, len(asked), len(replied))
    return b"".join((_HEADER.pack(_MAGIC, *facts, crc), asked, replied))


def _what(request: Request) -> int:
    if not isinstance(request, CodeMessage):
        return GRADIENT
    return CODE if request.is_training else EVALUATION


def _written(message: Message) -> bytes:
    frames = to_frames(message)
    return b"".join(part for one in frames for part in (_LENGTH.pack(len(one)), one))


def _frames(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size + length
        yield data[at - length : at]


def _damaged(file: Path, at: int) -> RunError:
    return RunError(f"{file} is damaged at byte {at:,}: it is not a recording there")
