"""Damaged frames and connections beside honest runs.

    turns     owners train one after the other: most of the frames
    rounds    all owners at the same time (``--rounds parallel``)
    once      codes that are sent once (``--release once``)

Each server is attacked while it waits for its clients; while the current turn, or the
round, waits for a client whose certificate the attacker has; and beside the training of
the honest clients, that one among them. Every run must end like the same run in one
process. ``hostile_attack`` has the kinds of attack.

``--seconds`` is for throwing. Starting the processes, the rest of the honest runs and
the comparison come on top: minutes on a busy machine.
"""

import sys
import time
from collections import Counter
from typing import Any, NamedTuple

from benchmarks.hostile_attack import Attack
from benchmarks.hostile_run import (
    HostileRun,
    Size,
    resident_bytes,
    running,
    wait_until,
)

IMPOSTOR = "carol"
_WARM_UP = 400  # what gRPC and Python take once
_TURN_SECONDS = 7200  # the impostor holds its turn for long
_SECONDS_PER_EPOCH = 10.0  # of throwing: an honest run is longer where there is time
_EPOCHS = (20, 200)


class _Server(NamedTuple):
    """One of the servers.

    Attributes:
        settings: of its run.
        share: of all frames and of the time.
        steps: of the honest run before the impostor comes; 0 is at the beginning.
    """

    settings: dict[str, Any]
    share: float
    steps: int = 0


SERVERS = {
    "turns": _Server({}, 0.7),
    "rounds": _Server({"rounds": "parallel"}, 0.15),
    "once": _Server({"release": "once", "local_epochs": 1}, 0.15, steps=30),
}


def frames(size: Size) -> dict[str, Any]:
    """Attack a server of each kind."""
    found = {name: _attack(name, size) for name in SERVERS}
    return {"total": sum(one["total"] for one in found.values()), **found}


def _attack(kind: str, size: Size) -> dict[str, Any]:
    chosen = SERVERS[kind]
    fewest, most = _EPOCHS
    epochs = min(max(int(size.seconds / _SECONDS_PER_EPOCH), fewest), most)
    count, seconds = size.frames * chosen.share, size.seconds * chosen.share
    with running(epochs=epochs, turn_seconds=_TURN_SECONDS, **chosen.settings) as run:
        pid = run.start_server()
        watch = _Watch(kind, pid)
        Attack(run, IMPOSTOR, seed=0).go(_WARM_UP, seconds)
        watch.begin("waiting")
        waiting = Attack(run, IMPOSTOR, seed=1)
        waiting.go(count * 0.4, seconds * 0.4, watch.is_on)
        _clear_the_impostors_place(run, chosen)
        watch.begin("in the impostor's turn")
        turn = Attack(run, IMPOSTOR, seed=2, has_turn=True, begins=not chosen.steps)
        turn.go(count * 0.4, seconds * 0.4, watch.is_on)
        run.start_clients([IMPOSTOR])
        watch.begin("training")
        training = Attack(run, IMPOSTOR, seed=3)
        training.go(count * 0.2, seconds * 0.2, watch.is_on)
        watch.begin("the rest of the honest run")
        return {**_figures([waiting, turn, training]), **watch.mib(), **run.outcome()}


def _clear_the_impostors_place(run: HostileRun, chosen: _Server) -> None:
    """Start the honest clients; the impostor's is not there, or not any more."""
    others = [name for name in run.names if name != IMPOSTOR]
    run.start_clients(run.names if chosen.steps else others)
    wait_until(lambda: all(f"{name} has come" in run.server_text for name in others))
    if chosen.steps:
        wait_until(lambda: run.steps() >= chosen.steps or not run.is_serving())
        run.kill_client(IMPOSTOR)


def _figures(attacks: list[Attack]) -> dict[str, Any]:
    waiting, turn, training = (one.done.total() for one in attacks)
    done = sum((one.done for one in attacks), Counter[str]())
    return {
        "while_waiting": waiting,
        "in_the_impostors_turn": turn,
        "while_training": training,
        "total": done.total(),
        "by_kind": dict(done),
        "by_message": dict(sum((one.damaged for one in attacks), Counter[str]())),
        "answers": dict(sum((one.answers for one in attacks), Counter[str]())),
    }


class _Watch:
    """Looks at the server's memory, and tells on standard error how far things are."""

    def __init__(self, kind: str, pid: int) -> None:
        self._kind = kind
        self._pid = pid
        self._began = time.monotonic()
        self._bytes: list[int] = []

    def begin(self, phase: str) -> None:
        """Note that a phase begins."""
        self.is_on()
        seconds = time.monotonic() - self._began
        print(f"{self._kind}: {phase} after {seconds:.0f} s", file=sys.stderr)

    def is_on(self) -> bool:
        """Return whether the server runs."""
        self._bytes.append(resident_bytes(self._pid))
        return self._bytes[-1] > 0

    def mib(self) -> dict[str, Any]:
        """Return the server's memory, from the first phase on."""
        alive = [round(one / 2**20, 1) for one in self._bytes if one]
        figures = {"before": alive[0], "most": max(alive), "last": alive[-1]}
        return {"server_mib": figures}
