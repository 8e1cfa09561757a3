"""The replies of a turn, of which only the newest lie in memory.

    put ─► newest, in memory ── make_room ──► older, in a temporary file as frames
    get ◄──────┴─────────────────────────────────┘

Making room is a call of its own: it can be done while a reply is on its way. A turn may
be a whole epoch, and any of its replies may be asked for again. What is read back from
the file is the same to the last bit: it went through the wire's serialiser.
"""

import tempfile
from typing import IO, NamedTuple

from lightsplit.protocol import Reply, from_frames, to_frames

Key = tuple[str, int]  # kind and step of the request
MEMORY_BYTES = 256 * 2**20


class _Place(NamedTuple):
    offset: int
    lengths: tuple[int, ...]  # of the frames


class ReplyStore:
    """Replies by key: added, looked up, and forgotten all at once.

    Args:
        memory_bytes: payload that ``make_room`` leaves in memory; the newest reply
            stays in any case.
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._limit = memory_bytes
        self._newest: dict[Key, Reply] = {}
        self._newest_bytes = 0
        self._older: dict[Key, _Place] = {}
        self._file: IO[bytes] | None = None

    def __contains__(self, key: Key) -> bool:
        return key in self._newest or key in self._older

    def __len__(self) -> int:
        return len(self._newest) + len(self._older)

    def get(self, key: Key) -> Reply | None:
        """Return the reply that was put under ``key``, if there is one."""
        if key in self._older:
            return self._read(self._older[key])
        return self._newest.get(key)

    def put(self, key: Key, reply: Reply) -> None:
        """Keep a reply, in memory at first."""
        self._newest[key] = reply
        self._newest_bytes += reply.payload_bytes

    def make_room(self) -> None:
        """Move the oldest replies out of memory while there are too many."""
        while self._newest_bytes > self._limit and len(self._newest) > 1:
            self._move_oldest()

    def drop(self, key: Key) -> None:
        """Forget the reply under ``key``, if there is one."""
        reply = self._newest.pop(key, None)
        if reply is not None:
            self._newest_bytes -= reply.payload_bytes
        self._older.pop(key, None)

    def clear(self) -> None:
        """Forget all and free memory and disk."""
        self._newest.clear()
        self._older.clear()
        self._newest_bytes = 0
        if self._file is not None:
            self._file.close()
            self._file = None

    def _move_oldest(self) -> None:
        key = next(iter(self._newest))
        reply = self._newest.pop(key)
        self._newest_bytes -= reply.payload_bytes
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed by clear
        offset = self._file.seek(0, 2)
        frames = to_frames(reply)
        self._file.writelines(frames)
        self._older[key] = _Place(offset, tuple(map(len, frames)))

    def _read(self, place: _Place) -> Reply:
        assert self._file is not None  # noqa: S101
        self._file.seek(place.offset)
        frames = [self._file.read(length) for length in place.lengths]
        return from_frames(frames)  # type: ignore[return-value]
