"""The replies of a turn: recent ones in memory, older ones in a temporary file.

    put ──► recent replies, as they are ── beyond the limit ──► older ones, as frames
    get ◄───────────┴───────────────────────────────────────────────┘

A turn may be a whole epoch, and a client may ask for any of its replies again. A reply
from the file has the same bits as before, because the serialiser loses none.
"""

import os
import tempfile
from typing import IO, NamedTuple

from lightsplit.protocol import Reply, from_frames, to_frames

Key = tuple[str, int]  # kind and step of the request
MEMORY_BYTES = 256 * 2**20


class _Place(NamedTuple):
    """Where the frames of a reply lie in the file."""

    offset: int
    lengths: tuple[int, ...]


class ReplyCache:
    """Replies by key.

    Args:
        memory_bytes: the most bytes of tensors to keep in memory.
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._recent: dict[Key, Reply] = {}  # the oldest first
        self._recent_bytes = 0
        self._older: dict[Key, _Place] = {}
        self._file: IO[bytes] | None = None

    def __contains__(self, key: Key) -> bool:
        return key in self._recent or key in self._older

    def __len__(self) -> int:
        return len(self._recent) + len(self._older)

    def get(self, key: Key) -> Reply | None:
        """Return the reply that was put under ``key``, if there is one."""
        if key in self._older:
            return self._read(self._older[key])
        return self._recent.get(key)

    def put(self, key: Key, reply: Reply) -> None:
        """Keep a reply; move the oldest ones to the file if memory is full."""
        self.drop(key)
        self._recent[key] = reply
        self._recent_bytes += reply.payload_bytes
        while self._recent_bytes > self._memory_bytes:
            self._move_oldest()

    def drop(self, key: Key) -> None:
        """Forget the reply under ``key``, if there is one."""
        reply = self._recent.pop(key, None)
        if reply is not None:
            self._recent_bytes -= reply.payload_bytes
        self._older.pop(key, None)

    def clear(self) -> None:
        """Forget all replies and remove the file."""
        self._recent.clear()
        self._recent_bytes = 0
        self._older.clear()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _move_oldest(self) -> None:
        """Move the oldest reply in memory to the end of the file."""
        key, reply = next(iter(self._recent.items()))
        self.drop(key)
        frames = to_frames(reply)
        file = self._opened_file()
        offset = file.seek(0, os.SEEK_END)
        file.writelines(frames)
        self._older[key] = _Place(offset, tuple(len(frame) for frame in frames))

    def _read(self, place: _Place) -> Reply:
        file = self._opened_file()
        file.seek(place.offset)
        frames = [file.read(length) for length in place.lengths]
        return from_frames(frames)  # type: ignore[return-value]

    def _opened_file(self) -> IO[bytes]:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed by clear
        return self._file
