"""An owner that lies, stalls or answers twice harms its own share of a round alone.

The server, Alice and Bob are processes. Carol is hostile; she has the owners' key, and
speaks from here, over a socket like theirs.
"""

import signal
import threading
from dataclasses import replace

import pytest
import torch
from lab.faults import left_behind
from lab.processes import wait_until
from lab.runs import (
    NAMES,
    PATIENCE_SECONDS,
    assert_same_state,
    assert_same_weights,
    build_job,
    complete,
    reference,
)
from safetensors.torch import load_file

from lightsplit.codecs import Code
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.errors import LightSplitError, RunError
from lightsplit.experiments import build, from_settings
from lightsplit.experiments.deploy import join_experiment
from lightsplit.protocol import CodeMessage, OutputGradient, Share
from lightsplit.runs.rounds import read_participation
from lightsplit.runtime import Averaging, Secret
from lightsplit.transports.grpc_client import Connection
from lightsplit.transports.sealing import SealingKey

PARALLEL = {"rounds": "parallel", "heads": "shared", "epochs": 2}  # 4 rounds
SPLITFED = {
    "rounds": "splitfed-v1",
    "epochs": 4,
    "turn_steps": 2,
    "hand_off": "fp32",
    "hand_off_optimizer": "travels",
}
CAROL = NAMES.index("carol")


class Round:
    """A run of three owners, of whom Carol is a thread of this process."""

    def __init__(self, cluster, settings):
        self._cluster = cluster
        self._settings = settings
        self.refused = None

    def begin(self):
        """Start the server, the hostile Carol, then the others; return her thread."""
        cluster = self._cluster
        cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
        carol = threading.Thread(target=self._join, daemon=True)
        carol.start()
        wait_until(lambda: "carol has come" in cluster.server.text, "carol")
        for name in ("alice", "bob"):
            cluster.start_client(name)
        return carol

    def finish(self):
        """Wait for the end of the run, and return what it leaves."""
        for process in self._cluster.processes.values():
            assert process.wait(2 * PATIENCE_SECONDS) == 0, process.text
        return left_behind(self._cluster)

    def finish_without_carol(self):
        """Wait for the end of the run; the server need not wait for her to know."""
        for process in self._cluster.clients.values():
            assert process.wait(2 * PATIENCE_SECONDS) == 0, process.text
        server = self._cluster.server
        server.signal(signal.SIGINT)
        assert server.wait() in (0, 130), server.text

    def true_carol_comes(self):
        self._cluster.start_client("carol")

    def weights(self, name):
        kind = "server" if name == "server" else "client"
        return load_file(self._cluster.folder / name / f"{kind}.safetensors")

    def participation(self):
        file = self._cluster.folder / "server" / "participation.jsonl"
        return read_participation(file, len(NAMES))

    def _join(self):
        folder = self._cluster.folder
        options = JoinOptions(
            key=SealingKey.load(folder / "clients.key"),
            secret=Secret(0),
            state_folder=folder / "carol",
            give_up_seconds=20,
        )
        place = Endpoint(f"127.0.0.1:{self._cluster.ports['carol']}")
        experiment = from_settings(complete(**self._settings))
        try:
            join_experiment(experiment, place, options, name="carol")
        except LightSplitError as error:
            self.refused = error


@pytest.fixture
def begin(make_cluster):
    def begin(settings, **options):
        return Round(make_cluster(settings, **options), settings)

    return begin


def claiming(number):
    """Return a part that says nothing but ``number`` where samples once stood."""

    def part(_self, side, _samples):
        tensors = (*side.trainable, *side.statistics)
        floats = sum(one.numel() for one in tensors if one.is_floating_point())
        numbers = torch.zeros(len(side.trainable) + floats, dtype=torch.int64)
        numbers[0] = number
        return numbers

    return part


class Claiming:
    """Carol's averaging in one process, where all owners have one object."""

    def __init__(self, shared, number):
        self._shared, self._part = shared, claiming(number)
        self.begin, self.apply = shared.begin, shared.apply

    def exchange(self, side, send, at, rows):
        self._shared._part = lambda *given: self._part(None, *given)
        try:
            return self._shared.exchange(side, send, at, rows)
        finally:
            del self._shared._part


@pytest.mark.parametrize("claimed", [2**50, -1])
def test_the_samples_that_an_owner_claims_change_nobodys_weight(
    claimed, begin, monkeypatch
):
    """The run is that of an owner who adds nothing to the gradient of the head."""
    job = build_job(**PARALLEL)
    carol = job.trainer.clients[CAROL]
    carol.averaging = Claiming(carol.averaging, 0)
    list(job.trainer.run())
    monkeypatch.setattr(Averaging, "_part", claiming(claimed))
    hostile = begin(PARALLEL)
    hostile.begin().join(2 * PATIENCE_SECONDS)
    got = hostile.finish()
    assert_same_state(got.server, job.trainer.server.side.state())
    for index in range(CAROL):
        assert_same_state(got.clients[index], job.trainer.clients[index].side.state())


@pytest.mark.parametrize("settings", [PARALLEL, SPLITFED], ids=["parallel", "splitfed"])
@pytest.mark.parametrize("more", [-1, 1])
def test_a_share_of_another_length_is_refused_and_meets_no_other(
    more, settings, begin, monkeypatch
):
    """The true Carol comes after her, and the run is what it would have been."""
    call = Connection.call

    def send(self, message):
        if isinstance(message, Share):
            numbers = torch.zeros(len(message.numbers) + more, dtype=torch.int64)
            message = replace(message, numbers=numbers)
        return call(self, message)

    monkeypatch.setattr(Connection, "call", send)
    hostile = begin(settings)
    hostile.begin().join(2 * PATIENCE_SECONDS)
    assert hostile.refused.code == "wrong-shape"
    hostile.true_carol_comes()
    assert_same_weights(hostile.finish(), reference(**settings))


@pytest.mark.parametrize("settings", [PARALLEL, SPLITFED], ids=["parallel", "splitfed"])
def test_an_owner_that_answers_twice_counts_once(settings, begin, monkeypatch):
    """Whatever it says the second time."""
    call, repeated = Connection.call, []

    def send(self, message):
        reply = call(self, message)
        again = another(message)
        if again is not None:
            call(self, again)
            repeated.append(message.kind)
        return reply

    monkeypatch.setattr(Connection, "call", send)
    hostile = begin(settings)
    hostile.begin().join(2 * PATIENCE_SECONDS)
    assert hostile.refused is None
    assert set(repeated) == {"code", "output_gradient", "share"}
    assert_same_weights(hostile.finish(), reference(**settings))


def another(message):
    """Return a message that stands in the same place and says something else."""
    if isinstance(message, CodeMessage) and message.is_training:
        return replace(message, code=Code(torch.zeros_like(message.code.values)))
    if isinstance(message, OutputGradient):
        return replace(message, gradient=100 * message.gradient)
    if isinstance(message, Share):
        return replace(message, numbers=message.numbers + 1)
    return None


@pytest.mark.parametrize("kind", [CodeMessage, OutputGradient, Share])
@pytest.mark.parametrize("settings", [PARALLEL, SPLITFED], ids=["parallel", "splitfed"])
def test_rounds_go_on_without_an_owner_that_stalls(settings, kind, begin, monkeypatch):
    """It says nothing in place of its first message of a kind, and holds its line."""
    call, silent, is_over = Connection.call, threading.Event(), threading.Event()

    def send(self, message):
        if isinstance(message, kind) and message.is_training:
            silent.set()
            is_over.wait(4 * PATIENCE_SECONDS)
            raise RunError("Carol leaves")
        return call(self, message)

    monkeypatch.setattr(Connection, "call", send)
    settings = {**settings, "epochs": 4}  # if she is late, she is there later
    hostile = begin(settings, serve=["--min-clients", 2, "--round-timeout", 5])
    carol = hostile.begin()
    hostile.finish_without_carol()
    assert silent.is_set()
    is_over.set()
    carol.join(PATIENCE_SECONDS)
    told = hostile.participation()
    assert not any(CAROL in one.done for one in told)
    job = build(build_job(**settings).experiment, participation=told)
    list(job.trainer.run())
    assert_same_state(hostile.weights("server"), job.trainer.server.side.state())
    for index in set(told[-1].done):
        side = job.trainer.clients[index].side
        assert_same_state(hostile.weights(NAMES[index]), side.state())
