"""Damaged frames and connections beside an honest run.

    at the door      a damaged frame as the first of a stream
    in prediction    a client's valid greeting, then a damaged frame
    stranger         a certificate of the same authority, but a name that takes no part
    no certificate   random bytes on a bare connection

A refusal ends a stream, so each stream carries one damaged frame.
"""

import contextlib
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import grpc

from benchmarks.hostile_run import (
    STRANGER,
    HostileRun,
    Size,
    open_channel,
    predicting_frames,
    resident_bytes,
    running,
)
from lightsplit.protocol.control import Ready, Refusal, TurnDone
from lightsplit.protocol.frames import Reader, to_frames
from lightsplit.transports.grpc_server import SESSION

_THREADS = 4
_WARM_UP = 400  # what gRPC and Python take once


def frames(size: Size) -> dict[str, Any]:
    """Attack a server that waits, then one that trains; let the honest run end."""
    with running(epochs=60) as run:
        pid = run.start_server()
        _Attack(run, seed=0).go(_WARM_UP, size.seconds)
        resident = [resident_bytes(pid)]

        def is_on() -> bool:
            resident.append(resident_bytes(pid))
            return resident[-1] > 0

        waiting = _Attack(run, seed=1)
        waiting.go(size.frames // 2, size.seconds / 2)
        run.start_clients()
        training = _Attack(run, seed=2)
        between = resident_bytes(pid)
        training.go(size.frames // 2, size.seconds / 2, is_on)
        last = [one for one in resident if one][-1]
        known = [
            round(one / 2**20, 1) for one in (resident[0], between, max(resident), last)
        ]
        done = waiting.done + training.done
        return {
            "while_waiting": waiting.done.total(),
            "while_training": training.done.total(),
            "total": done.total(),
            "by_kind": dict(done),
            "answers": dict(waiting.answers + training.answers),
            "resident_mib": dict(
                zip(("before", "waiting", "most", "last"), known, strict=True)
            ),
            **run.outcome(),
        }


class _Attack:
    """Throws damaged frames from several threads; the same ones for the same seed."""

    def __init__(self, run: HostileRun, seed: int) -> None:
        self._run = run
        self._seed = seed
        self._greeting, code = predicting_frames(run, "bob")
        others = (Ready(2), TurnDone(0, b"x" * 99))
        self._valid = [self._greeting, code, *(to_frames(one)[0] for one in others)]
        self._lock = threading.Lock()
        self.done = Counter[str]()
        self.answers = Counter[str]()

    def go(
        self, count: int, seconds: float, is_on: Callable[[], bool] = lambda: True
    ) -> None:
        """Throw up to ``count``, for so long at most, while ``is_on``."""
        end = time.monotonic() + seconds
        share = count // _THREADS
        threads = [
            threading.Thread(target=self._throw, args=(number, share, end, is_on))
            for number in range(_THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _throw(
        self, number: int, count: int, end: float, is_on: Callable[[], bool]
    ) -> None:
        chance = random.Random(_THREADS * self._seed + number)  # noqa: S311
        kinds = ("at the door", "in prediction", "stranger", "no certificate")
        with (
            open_channel(self._run, "bob") as bob,
            open_channel(self._run, STRANGER) as stranger,
        ):
            for _ in range(count):
                if time.monotonic() > end or not is_on():
                    return
                kind = chance.choice(kinds)
                line = stranger if kind == "stranger" else bob
                self._count(kind, self._one(kind, line, chance))

    def _one(self, kind: str, line: grpc.Channel, chance: random.Random) -> str:
        if kind == "no certificate":
            return _shout(self._run.port, chance)
        before = [self._greeting] if kind == "in prediction" else []
        return _answer(line, [*before, _damaged(chance, self._valid)])

    def _count(self, kind: str, answer: str) -> None:
        with self._lock:
            self.done[kind] += 1
            self.answers[answer] += 1


def _damaged(chance: random.Random, valid: list[bytes]) -> bytes:
    frame = bytearray(chance.choice(valid))
    match chance.randrange(3):
        case 0:
            return chance.randbytes(chance.randrange(200))
        case 1:
            return bytes(frame[: chance.randrange(len(frame))])
    for _ in range(chance.randrange(1, 5)):
        frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
    return bytes(frame)


def _answer(channel: grpc.Channel, said: list[bytes]) -> str:
    """Return the code of the server's refusal, or how the stream ended without one."""
    reader = Reader()
    call: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(SESSION)
    try:
        for frame in call(iter(said), timeout=30):
            message = reader.feed(frame)
            if isinstance(message, Refusal):
                return message.code
    except grpc.RpcError as error:
        return f"gRPC {error.code().name}"
    return "ended without a refusal"


def _shout(port: int, chance: random.Random) -> str:
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), timeout=10) as line,
    ):
        line.sendall(chance.randbytes(chance.randrange(1, 2000)))
        return "bytes sent"
    return "no connection"
