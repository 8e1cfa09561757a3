"""A TCP line that can be counted, watched and cut at any byte."""

import contextlib
import socket
import threading

KINDS = {1: "code", 2: "output", 3: "output_gradient", 4: "code_gradient"}
KINDS |= {16: "release", 17: "recall", 18: "noted"}
KINDS |= {8: "grant", 9: "turn_done", 21: "share", 22: "total"}
_PREFACE_BYTES = 24  # what an HTTP/2 client says first
_HEAD_BYTES = 9  # of an HTTP/2 frame
_DATA = 0


class Proxy:
    """Forwards every connection to ``upstream_port`` and shows what passes.

    ``watch`` is called with the direction, a number of the connection and each chunk.
    It returns how many bytes of the chunk still pass before the line is cut, or None.
    """

    def __init__(self, upstream_port, watch=lambda direction, line, chunk: None):
        self.upstream_port = upstream_port
        self.bytes = {"up": 0, "down": 0}
        self.cuts = 0
        self._watch = watch
        self._lock = threading.RLock()
        self._sockets = set()
        self._threads = []
        self._lines = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self):
        self._start(self._accept)
        return self

    def __exit__(self, *_exc):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in self._threads)

    def cut(self):
        """Break every connection."""
        with self._lock:
            open_ones, self._sockets = self._sockets, set()
        for one in open_ones:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _start(self, work, *arguments):
        thread = threading.Thread(target=work, args=arguments, name="proxy")
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.upstream_port))
            except OSError:
                near.close()
                continue
            self._join(near, far)

    def _join(self, near, far):
        for one in (near, far):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._lines += 1
            self._sockets |= {near, far}
        both = _Both(near, far)
        self._start(self._pump, "up", self._lines, near, far, both)
        self._start(self._pump, "down", self._lines, far, near, both)

    def _pump(self, direction, line, source, target, both):
        try:
            while chunk := source.recv(65536):
                with self._lock:
                    rest = self._watch(direction, line, chunk)
                    self.bytes[direction] += len(chunk)
                target.sendall(chunk if rest is None else chunk[:rest])
                if rest is not None:
                    self.cuts += 1
                    break
        except OSError:
            pass
        with self._lock:
            self._sockets -= {source, target}
        both.end()


class _Both:
    """The two sockets of one line; the second pump to end closes them."""

    def __init__(self, *sockets):
        self._sockets = sockets
        self._lock = threading.Lock()
        self._ended = 0

    def end(self):
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._ended += 1
            if self._ended == len(self._sockets):
                for one in self._sockets:
                    one.close()


class Frames:
    """Finds gRPC messages in one direction of a plain-text HTTP/2 connection."""

    def __init__(self, direction):
        self._buffer = bytearray()
        self._at = 0  # of the buffer's first byte in the stream
        self._skip = _PREFACE_BYTES if direction == "up" else 0
        self._in_message = 0  # bytes of a message that are still to come

    def feed(self, chunk):
        """Return (kind, where its payload starts, its length) of what begins here."""
        self._buffer += chunk
        found = []
        while self._take(found):
            pass
        return found

    def _take(self, found):
        if self._skip:
            return self._drop(min(self._skip, len(self._buffer)), is_skip=True)
        if len(self._buffer) < _HEAD_BYTES:
            return False
        length = int.from_bytes(self._buffer[:3], "big")
        if self._buffer[3] != _DATA or not length:
            self._skip = length
            return self._drop(_HEAD_BYTES)
        if len(self._buffer) < _HEAD_BYTES + min(length, 7):
            return False
        self._look(found, length)
        self._skip = length
        return self._drop(_HEAD_BYTES)

    def _look(self, found, length):
        if not self._in_message:
            start = _HEAD_BYTES + 5
            size = int.from_bytes(self._buffer[_HEAD_BYTES + 1 : start], "big")
            kind = KINDS.get(_number(self._buffer[start:])) if size else None
            found.append((kind, self._at + start, size))
            self._in_message = size + 5
        self._in_message = max(self._in_message - length, 0)

    def _drop(self, count, *, is_skip=False):
        del self._buffer[:count]
        self._at += count
        self._skip -= count if is_skip else 0
        return count > 0


def _number(message):
    """Return the number of the field that a message begins with."""
    first, second = message[0], message[1] if len(message) > 1 else 0
    tag = first & 0x7F | second << 7 if first & 0x80 else first
    return tag >> 3
