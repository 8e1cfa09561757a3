"""Throws damaged frames and bytes at a server, from several threads.

    at the door      a damaged frame as the first of a stream
    in prediction    a client's valid greeting, then a damaged frame
    agreeing         a client's valid greeting for the run's key, then a damaged frame
    stranger         a certificate of the same authority, but a name that takes no part
    no certificate   random bytes on a bare connection
    in turn          a client in its training turn or round: as many messages of its
                     first step as chance wants, and then a damaged frame

What is damaged is a message of any kind in the schema. A refusal ends a stream, so each
stream carries one damaged frame. A frame that is still a message which changes
something is not thrown: it would be a step of that client, and nothing to refuse.
"""

import contextlib
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable

import grpc

from benchmarks.hostile_messages import (
    every_message,
    first_step,
    greeting,
    predicting_frames,
)
from benchmarks.hostile_run import STRANGER, HostileRun, open_channel
from lightsplit.errors import LightSplitError
from lightsplit.protocol import CodeMessage, OutputGradient
from lightsplit.protocol.control import Ready, Refusal, TurnDone
from lightsplit.protocol.frames import Reader, from_frames, to_frames
from lightsplit.protocol.messages import Release, Share
from lightsplit.transports.grpc_server import SESSION

_THREADS = 4
_NOT_REACHED = ("no connection", "gRPC UNAVAILABLE")
_KINDS = ("at the door", "in prediction", "agreeing", "stranger", "no certificate")
_CHANGE = (OutputGradient, Release, Share, TurnDone)


class Attack:
    """Throws damaged frames; the same ones for the same seed.

    Args:
        run: that is attacked.
        impostor: the client whose turn is attacked.
        seed: of the damage.
        has_turn: whether one thread more throws in the impostor's training turn.
        begins: whether that is its first turn, whose messages are known.
    """

    def __init__(
        self,
        run: HostileRun,
        impostor: str,
        *,
        seed: int,
        has_turn: bool = False,
        begins: bool = True,
    ) -> None:
        self._run = run
        self._impostor = impostor
        self._seed = seed
        self._threads = _THREADS + has_turn
        predict, code = predicting_frames(run, "bob")
        self._greetings = {
            "in prediction": [predict],
            "agreeing": [greeting(run, "bob", "agree")],
        }
        self._valid = {**every_message(run, impostor), "code": code, "hello": predict}
        self._enter = [greeting(run, impostor, "train"), to_frames(Ready(2))[0]]
        self._steps = first_step(run, impostor) if has_turn and begins else []
        is_joined = run.settings.get("rounds") == "parallel"  # a code counts there
        self._changes = (*_CHANGE, CodeMessage) if is_joined else _CHANGE
        self._lock = threading.Lock()
        self.done = Counter[str]()
        self.damaged = Counter[str]()
        self.answers = Counter[str]()

    def go(
        self, count: float, seconds: float, is_on: Callable[[], bool] = lambda: True
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
            open_channel(self._run, self._impostor) as impostor,
        ):
            lines = {"stranger": stranger, "in turn": impostor}
            while goes_on():
                kind = chance.choice(kinds)
                self._one(kind, lines.get(kind, bob), chance)

    def _one(self, kind: str, line: grpc.Channel, chance: random.Random) -> None:
        if kind == "no certificate":
            self._count(kind, "bytes", _shout(self._run.port, chance))
            return
        before = self._greetings.get(kind, [])
        if kind == "in turn":
            known = chance.randrange(len(self._steps) + 1)
            before = [*self._enter, *self._steps[:known]]
        name, bad = self._damaged(chance)
        while before and self._may_change(bad):
            name, bad = self._damaged(chance)
        answer = _answer(line, [*before, bad])
        self._count(kind, name, f"{kind}: {answer}" if kind == "in turn" else answer)

    def _count(self, kind: str, name: str, answer: str) -> None:
        with self._lock:
            self.answers[answer] += 1
            if not answer.endswith(_NOT_REACHED):  # the run has just ended
                self.done[kind] += 1
                self.damaged[name] += 1

    def _may_change(self, frame: bytes) -> bool:
        try:
            return isinstance(from_frames([frame]), self._changes)
        except LightSplitError:
            return False

    def _damaged(self, chance: random.Random) -> tuple[str, bytes]:
        """Return what was damaged, and what became of it."""
        name = chance.choice([*self._valid])
        frame = bytearray(self._valid[name])
        match chance.randrange(5):
            case 0:
                return "bytes", chance.randbytes(chance.randrange(200))
            case 1 | 2:
                return name, bytes(frame[: chance.randrange(len(frame))])
        for _ in range(chance.randrange(1, 5)):
            frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
        return name, bytes(frame)


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
