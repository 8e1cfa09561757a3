"""Damaged frames and connections beside an honest run.

    at the door      a damaged frame as the first of a stream
    in prediction    a client's valid greeting, then a damaged frame
    stranger         a certificate of the same authority, but a name that takes no part
    no certificate   random bytes on a bare connection
    in turn          a client in its training turn: a damaged code, or a good code and
                     then a damaged gradient or hand-off

They are thrown at a server that waits for its clients; at one whose current turn is the
attacker's, who has the certificate of a client; and beside the training of the honest
clients, that one among them. A refusal ends a stream, so each stream carries one
damaged frame. A frame whose damage leaves a gradient that may be applied is not thrown:
it would be a step of that client, and nothing to refuse.
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

from benchmarks.hostile_messages import predicting_frames, training_frames
from benchmarks.hostile_run import (
    STRANGER,
    HostileRun,
    Size,
    open_channel,
    resident_bytes,
    running,
)
from lightsplit.errors import LightSplitError
from lightsplit.protocol import OutputGradient
from lightsplit.protocol.control import Ready, Refusal, TurnDone
from lightsplit.protocol.frames import Reader, from_frames, to_frames
from lightsplit.transports.grpc_server import SESSION

IMPOSTOR = "carol"
_THREADS = 4
_WARM_UP = 400  # what gRPC and Python take once
_TURN_SECONDS = 7200  # the impostor holds its turn for long
_NOT_REACHED = ("no connection", "gRPC UNAVAILABLE")
_KINDS = ("at the door", "in prediction", "stranger", "no certificate")


def frames(size: Size) -> dict[str, Any]:
    """Attack a server that waits, one in the impostor's turn, and one that trains."""
    with running(epochs=200, turn_seconds=_TURN_SECONDS) as run:
        pid = run.start_server()
        _Attack(run, seed=0).go(_WARM_UP, size.seconds)
        resident = [resident_bytes(pid)]

        def is_on() -> bool:
            resident.append(resident_bytes(pid))
            return resident[-1] > 0

        waiting = _Attack(run, seed=1)
        waiting.go(size.frames * 45 // 100, size.seconds * 0.4, is_on)
        run.start_clients([name for name in run.names if name != IMPOSTOR])
        turn = _Attack(run, seed=2, has_turn=True)
        turn.go(size.frames // 2, size.seconds * 0.5, is_on)
        run.start_clients([IMPOSTOR])
        training = _Attack(run, seed=3)
        training.go(size.frames * 15 // 100, size.seconds * 0.1, is_on)
        done = waiting.done + turn.done + training.done
        alive = [one / 2**20 for one in resident if one]
        return {
            "while_waiting": waiting.done.total(),
            "in_the_impostors_turn": turn.done.total(),
            "while_training": training.done.total(),
            "total": done.total(),
            "by_kind": dict(done),
            "answers": dict(waiting.answers + turn.answers + training.answers),
            "server_mib": {
                "before": round(alive[0], 1),
                "most": round(max(alive), 1),
                "last": round(alive[-1], 1),
            },
            **run.outcome(),
        }


class _Attack:
    """Throws damaged frames from several threads; the same ones for the same seed.

    Args:
        run: that is attacked.
        seed: of the damage.
        has_turn: whether one thread more throws in the impostor's training turn.
    """

    def __init__(self, run: HostileRun, seed: int, *, has_turn: bool = False) -> None:
        self._run = run
        self._seed = seed
        self._threads = _THREADS + has_turn
        self._greeting, code = predicting_frames(run, "bob")
        others = (Ready(2), TurnDone(0, b"x" * 99))
        self._valid = [self._greeting, code, *(to_frames(one)[0] for one in others)]
        self._in_turn = training_frames(run, IMPOSTOR)
        self._lock = threading.Lock()
        self.done = Counter[str]()
        self.answers = Counter[str]()

    def go(
        self, count: int, seconds: float, is_on: Callable[[], bool] = lambda: True
    ) -> None:
        """Throw ``count`` in all, for so long at most, while ``is_on``."""
        end = time.monotonic() + seconds

        def goes_on() -> bool:
            is_short = self.done.total() < count and time.monotonic() < end
            return is_short and is_on()

        threads = [
            threading.Thread(target=self._throw, args=(number, goes_on))
            for number in range(self._threads)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _throw(self, number: int, goes_on: Callable[[], bool]) -> None:
        chance = random.Random(100 * self._seed + number)  # noqa: S311
        kinds = _KINDS if number < _THREADS else ("in turn",)
        with (
            open_channel(self._run, "bob") as bob,
            open_channel(self._run, STRANGER) as stranger,
            open_channel(self._run, IMPOSTOR) as impostor,
        ):
            lines = {"stranger": stranger, "in turn": impostor}
            while goes_on():
                kind = chance.choice(kinds)
                self._count(kind, self._one(kind, lines.get(kind, bob), chance))

    def _one(self, kind: str, line: grpc.Channel, chance: random.Random) -> str:
        if kind == "no certificate":
            return _shout(self._run.port, chance)
        if kind == "in turn":
            return f"in turn: {_answer(line, self._turn(chance))}"
        before = [self._greeting] if kind == "in prediction" else []
        return _answer(line, [*before, _damaged(chance, self._valid)])

    def _turn(self, chance: random.Random) -> list[bytes]:
        """Return a good way into the turn, and a damaged frame in it."""
        hello, ready, code, *rest = self._in_turn
        if chance.random() < 0.5:
            return [hello, ready, _damaged(chance, [code, *rest])]
        while _may_be_applied(bad := _damaged(chance, rest)):
            pass
        return [hello, ready, code, bad]

    def _count(self, kind: str, answer: str) -> None:
        with self._lock:
            self.answers[answer] += 1
            if not answer.endswith(_NOT_REACHED):  # the run has just ended
                self.done[kind] += 1


def _may_be_applied(frame: bytes) -> bool:
    try:
        return isinstance(from_frames([frame]), OutputGradient)
    except LightSplitError:
        return False


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
