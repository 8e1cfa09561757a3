"""The replies of a turn, of which all but the newest are laid aside as frames.

    put ─► newest, as they are ── lay_aside ──► older, as frames in memory or a file
    get ◄──────┴──────────────────────────────────┘

A turn may be a whole epoch, and any of its replies may be asked for again. If each kept
the memory that it was computed in, the next would need new memory, which the operating
system gives page by page, and slowly. So replies are copied to one piece of memory that
serves turn after turn; what it cannot hold goes to a temporary file. Laying aside is a
call of its own: it can be done while a reply is on its way. What is read back is the
same to the last bit: it went through the wire's serialiser.
"""

import mmap
import tempfile
from itertools import chain
from typing import IO, NamedTuple

from lightsplit.protocol import Reply, from_frames, to_pieces

Key = tuple[str, int]  # kind and step of the request
MEMORY_BYTES = 256 * 2**20
_NEWEST = 2  # replies of a step


class _Place(NamedTuple):
    pile: mmap.mmap | IO[bytes]
    offset: int
    lengths: tuple[int, ...]  # of the frames


class ReplyStore:
    """Replies by key: added, looked up, and forgotten all at once.

    Args:
        memory_bytes: for replies that are laid aside; it is taken as it is needed, and
            kept.
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._limit = memory_bytes
        self._newest: dict[Key, Reply] = {}
        self._older: dict[Key, _Place] = {}
        self._memory: mmap.mmap | None = None
        self._file: IO[bytes] | None = None

    def __contains__(self, key: Key) -> bool:
        return key in self._newest or key in self._older

    def __len__(self) -> int:
        return len(self._newest) + len(self._older)

    def get(self, key: Key) -> Reply | None:
        """Return the reply that was put under ``key``, if there is one."""
        if key in self._older:
            return _read(self._older[key])
        return self._newest.get(key)

    def put(self, key: Key, reply: Reply) -> None:
        """Keep a reply, as it is at first."""
        self._newest[key] = reply

    def lay_aside(self) -> None:
        """Move all but the newest replies out of the way."""
        while len(self._newest) > _NEWEST:
            key = next(iter(self._newest))
            frames = to_pieces(self._newest.pop(key))
            lengths = tuple(sum(map(len, pieces)) for pieces in frames)
            pile = self._pile_for(sum(lengths))
            self._older[key] = _Place(pile, pile.tell(), lengths)
            for piece in chain.from_iterable(frames):
                pile.write(piece)

    def drop(self, key: Key) -> None:
        """Forget the reply under ``key``, if there is one."""
        self._newest.pop(key, None)
        self._older.pop(key, None)

    def clear(self) -> None:
        """Forget all; memory is kept for the replies to come, the file is not."""
        self._newest.clear()
        self._older.clear()
        if self._memory is not None:
            self._memory.seek(0)
        if self._file is not None:
            self._file.close()
            self._file = None

    def _pile_for(self, count: int) -> mmap.mmap | IO[bytes]:
        """Return where to lay ``count`` more bytes, standing at its end."""
        if self._memory is None and self._limit:
            # Private memory: the operating system gives it quicker than shared one.
            self._memory = mmap.mmap(-1, self._limit, access=mmap.ACCESS_COPY)
        if self._memory is not None and self._memory.tell() + count <= self._limit:
            return self._memory
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed by clear
        return self._file


def _read(place: _Place) -> Reply:
    pile, offset, lengths = place
    end = pile.tell()
    pile.seek(offset)
    frames = [pile.read(length) for length in lengths]
    pile.seek(end)
    return from_frames(frames)  # type: ignore[return-value]
