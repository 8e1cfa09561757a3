"""Faults at moments chosen by the messages on the lines, never by the clock."""

import contextlib
import itertools
import json
import random
import signal
import threading
import time
from types import SimpleNamespace

from safetensors.torch import load_file

from lab.processes import wait_until
from lab.proxy import Frames, Proxy
from lab.runs import NAMES, NOT_TOLD, PATIENCE_SECONDS

ANY = (None, 0.0, 0.5)  # of a message that was seen passes all, nothing, or half
STEP = dict.fromkeys(("code", "output", "output_gradient", "code_gradient"), ANY)
STEP |= dict.fromkeys(("release", "recall", "noted"), ANY)
IN_A_ROUND = STEP | dict.fromkeys(("share", "total"), ANY)
BETWEEN_ROUNDS = {"turn_done": (1.0,), "grant": (0.0,)}
ALL_OF_A_ROUND = IN_A_ROUND | dict.fromkeys(BETWEEN_ROUNDS, ANY)


class Moments:
    """Calls ``strike`` with the client's name after random numbers of messages.

    ``kinds`` are those that count, with what may pass of a message that was seen.
    ``strike`` returns whether it struck; if not, the next message is tried.
    """

    def __init__(self, strike, *, count, seed, longest_gap=10, kinds=STEP):
        self.left = count
        self._kinds = kinds
        self._strike = strike
        self._chance = random.Random(seed)  # noqa: S311  the same moments every time
        self._longest_gap = longest_gap
        self._wait = self._gap()
        self._frames = {}

    def watch(self, name):
        """Return what a proxy of this client's line shows its chunks to."""

        def look(direction, line, chunk):
            key = (name, direction, line)
            frames = self._frames.setdefault(key, Frames(direction))
            for kind, _, _ in frames.feed(chunk):
                if kind in self._kinds and self._is_now() and self._strike(name):
                    self.left -= 1
                    self._wait = self._gap()
                    passes = self._chance.choice(self._kinds[kind])
                    return None if passes is None else int(passes * len(chunk))
            return None

        return look

    def _gap(self):
        return self._chance.randint(1, self._longest_gap)

    def _is_now(self):
        self._wait -= 1
        return self.left > 0 and self._wait <= 0


class Halts:
    """Stops a line at messages of these numbers, until a test has done its work there.

    All owners have one line, so that nothing passes meanwhile. Evaluations count too.
    """

    def __init__(self, *numbers, kind="code"):
        self._numbers = set(numbers)
        self._kind = kind
        self._seen = 0
        self._frames = {}
        self._has_come, self._may_go = threading.Semaphore(0), threading.Semaphore(0)
        self.is_held = False

    def look(self, direction, line, chunk):
        """Look at what a proxy shows."""
        frames = self._frames.setdefault((direction, line), Frames(direction))
        for kind, _, _ in frames.feed(chunk):
            self._seen += kind == self._kind
            if kind == self._kind and self._seen in self._numbers:
                self.is_held = True
                self._has_come.release()
                self._may_go.acquire(timeout=PATIENCE_SECONDS)
                self.is_held = False

    @contextlib.contextmanager
    def next(self):
        """Wait for the next of the messages; it passes after the block."""
        assert self._has_come.acquire(timeout=PATIENCE_SECONDS), "no such message came"
        try:
            yield
        finally:
            self._may_go.release()


@contextlib.contextmanager
def lines(cluster, moments, port):
    """Give every client a line of its own that shows all messages to ``moments``."""
    with contextlib.ExitStack() as stack:
        proxies = [
            stack.enter_context(Proxy(port, moments.watch(name))) for name in NAMES
        ]
        cluster.ports = {n: p.port for n, p in zip(NAMES, proxies, strict=True)}
        yield proxies


def in_turn(*victims):
    """Choose one victim after the other; None is the client whose message is seen."""
    names = itertools.cycle(victims)
    return lambda speaker: next(names) or speaker


def train_under_kills(cluster, choose, *, count, seed, away_seconds=0, **moments):
    """Train to the end while processes are killed now and then, and started again.

    ``choose`` names the next victim, given the client whose message is seen. A killed
    client stays away for ``away_seconds``; then the run may end before all kills.
    ``moments`` are further arguments of Moments.
    """
    killed = set()

    def strike(speaker):
        victim = cluster.processes[choose(speaker)]
        if victim.code is not None or victim in killed:
            return False
        victim.signal(signal.SIGKILL)
        killed.add(victim)
        return True

    moments = Moments(strike, count=count, seed=seed, **moments)
    with lines(cluster, moments, cluster.start_server()) as proxies:
        for name in NAMES:
            cluster.start_client(name)
        supervise(cluster, proxies, away_seconds)
    assert away_seconds or moments.left == 0, "the run ended before all kills"


def supervise(cluster, proxies, away_seconds=0, seconds=2 * PATIENCE_SECONDS):
    """Start again whatever was killed, until all have ended well."""
    deadline = time.monotonic() + seconds
    done, gone = set(), {}
    while len(done) < 1 + len(NAMES):
        assert time.monotonic() < deadline, _logs(cluster)
        for name, process in cluster.processes.items():
            if process.code is None or name in done:
                continue
            assert process.code in (0, -signal.SIGKILL), _logs(cluster)
            if process.code == 0:
                done.add(name)
            elif name == "server":
                port = cluster.start_server()
                for proxy in proxies:
                    proxy.upstream_port = port
            elif time.monotonic() >= gone.setdefault(process, time.monotonic()) + (
                away_seconds
            ):
                cluster.start_client(name)
        time.sleep(0.005)


@contextlib.contextmanager
def standing_still(cluster, *names):
    """Stop clients while another one comes, so that the run is not over before."""
    for name in names:
        cluster.clients[name].signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for name in names:
            cluster.clients[name].signal(signal.SIGCONT)


def left_behind(cluster):
    """Return what the processes wrote, in the form of ``lab.runs.outcome``."""
    server = cluster.folder / "server"
    lines = (server / "metrics.jsonl").read_text().splitlines()
    record = json.loads((server / "record.json").read_text())
    checkpoints = server / "checkpoint"
    newest = checkpoints / (checkpoints / "latest").read_text()
    progress = json.loads((newest / "progress.json").read_text())["progress"]
    return SimpleNamespace(
        server=load_file(server / "server.safetensors"),
        clients=[
            load_file(cluster.folder / name / "client.safetensors") for name in NAMES
        ],
        steps=record["steps"],
        samples=record["samples"],
        client_steps=progress["client_steps"],
        history=[
            {k: v for k, v in json.loads(line).items() if k not in NOT_TOLD}
            for line in lines
        ],
    )


def is_away(coordinator, name):
    """Say whether the server has no connection of this client."""
    return next(m for m in coordinator.members if m.name == name).peer is None


def wait_until_away(coordinator, name):
    wait_until(lambda: is_away(coordinator, name), f"{name}'s absence")


def _logs(cluster):
    return {name: process.text for name, process in cluster.processes.items()}


class CutMessages:
    """Cuts a line in the middle of chosen messages: {kind: numbers of them}."""

    def __init__(self, chosen):
        self.chosen = {kind: set(numbers) for kind, numbers in chosen.items()}
        self.cuts = []
        self._seen = dict.fromkeys(chosen, 0)
        self._frames = {}
        self._passed = {}
        self._cut_at = {}

    def watch(self, name):
        """Return what a proxy of this client's line shows its chunks to."""
        return lambda direction, line, chunk: self._look((name, direction, line), chunk)

    def _look(self, key, chunk):
        frames = self._frames.setdefault(key, Frames(key[1]))
        begin = self._passed.get(key, 0)
        self._passed[key] = begin + len(chunk)
        for kind, start, length in frames.feed(chunk):
            if kind in self.chosen:
                self._seen[kind] += 1
                if self._seen[kind] in self.chosen[kind]:
                    self._cut_at[key] = kind, start + length // 2
        kind, at = self._cut_at.get(key, (None, self._passed[key] + 1))
        if at > self._passed[key]:
            return None
        self.cuts.append(kind)
        return max(at - begin, 0)


class CutAnywhere:
    """Cuts whichever line has the next byte of a random number."""

    def __init__(self, *, count, seed, longest_gap_bytes):
        self.left = count
        self._chance = random.Random(seed)  # noqa: S311  the same bytes every time
        self._longest = longest_gap_bytes
        self._gap = self._chance.randint(1, longest_gap_bytes)

    def watch(self, _name):
        """Return what a proxy of this client's line shows its chunks to."""
        return self._look

    def _look(self, _direction, _line, chunk):
        if not self.left:
            return None
        if self._gap > len(chunk):
            self._gap -= len(chunk)
            return None
        at, self._gap = self._gap, self._chance.randint(1, self._longest)
        self.left -= 1
        return at
