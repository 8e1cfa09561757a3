"""Networked runs inside this process with real sockets, and their references."""

import threading
from functools import cached_property, lru_cache
from types import SimpleNamespace

import torch

from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.deployment.network import join, make_expectation, serve
from lightsplit.experiments import build, from_settings, pieces
from lightsplit.runs.plan import RunPlan
from lightsplit.transports import ByteMeter
from lightsplit.transports.credentials import TlsFiles
from lightsplit.transports.sealing import SealingKey

NAMES = ("alice", "bob", "carol")
SMALL = {
    "clients": 3,
    "train_limit": 96,
    "test_limit": 24,
    "batch_size": 16,
    "epochs": 2,
    "turn_steps": 1,
}
PATIENCE_SECONDS = 300.0  # on a busy machine; what waits goes on at once
# Figures of a line that differ over a network; objectives stay with their client.
NOT_TOLD = ("seconds", "bytes", "objectives", "client_names", "weighted_by")
MESSAGES = ("code", "output", "output_gradient", "code_gradient", "labels", "framing")


def complete(**settings):
    """Return SMALL changed by ``settings``, with a projection that costs nothing."""
    merged = {**SMALL, **settings}
    if merged.get("codec", "lightsplit-f") in ("lightsplit-f", "lightsplit-l"):
        merged.setdefault("projection", "dct")
    return merged


def build_job(**settings):
    return build(from_settings(complete(**settings)))


@lru_cache(maxsize=64)
def _reference(frozen):
    job = build_job(**dict(frozen))
    list(job.trainer.run())
    return outcome(
        job.trainer.server.side,
        [_own_state(client, job.trainer) for client in job.trainer.clients],
        job.trainer.progress,
    )


def reference(**settings):
    """Return the outcome of the same run in one process."""
    return _reference(tuple(sorted(settings.items())))


def _own_state(client, trainer):
    """Return a client's side with its own optimizer, if that stays with it."""
    if trainer.side_travels:
        client.take_seat()
    return copied(client.side.state())


def outcome(server_side, client_states, progress):
    return SimpleNamespace(
        server=copied(server_side.state()),
        clients=client_states,
        steps=progress.steps,
        samples=progress.samples,
        client_steps=list(progress.client_steps),
        bytes={kind: progress.bytes.get(kind, 0) for kind in MESSAGES},
        history=[
            {k: v for k, v in line.items() if k not in NOT_TOLD}
            for line in progress.history
        ],
        verdicts=progress.verdicts,
        undone_turns=progress.undone_turns,
    )


def copied(state):
    return {name: tensor.detach().clone() for name, tensor in state.items()}


def assert_same_state(got, expected):
    assert got.keys() == expected.keys()
    different = [name for name in got if not torch.equal(got[name], expected[name])]
    assert not different, f"different: {different}"


def assert_same_weights(got, expected):
    """Compare what a run leaves: server and clients, bit for bit, and its counters."""
    assert_same_state(got.server, expected.server)
    for mine, theirs in zip(got.clients, expected.clients, strict=True):
        assert_same_state(mine, theirs)
    for figure in ("steps", "samples", "client_steps", "history"):
        assert getattr(got, figure) == getattr(expected, figure), figure


class Network:
    """A server and its clients as threads of this process.

    Everything is built before the first thread starts: building draws from torch's one
    generator.
    """

    def __init__(
        self,
        folder,
        *,
        tls=None,
        names=NAMES,
        plan=None,
        are_names_open=False,
        **settings,
    ):
        self.experiment = from_settings(complete(**settings))
        self.folder = folder
        self.names = list(names)
        self.tls = tls
        self._are_names_open = are_names_open
        self.key = SealingKey.generate()
        self.coordinator = None
        self.port = 0
        self.server_job = build(self.experiment)
        self.jobs = {name: build(self.experiment) for name in self.names}
        self.meters = {name: ByteMeter() for name in self.names}
        self.ends = {}
        self.errors = {}
        self._plan = self._make_plan(**(plan or {}))
        self._threads = []
        self._is_listening = threading.Event()
        self._is_ending = False

    def __enter__(self):
        self._start("server", self._serve)
        assert self._is_listening.wait(PATIENCE_SECONDS), self.errors
        if "server" in self.errors:
            raise self.errors["server"]
        return self

    def __exit__(self, *_exc):
        self._is_ending = True
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
        assert not any(thread.is_alive() for thread in self._threads)

    @property
    def contract(self):
        return self.server_job.contract

    @cached_property
    def expectation(self):
        return make_expectation(self.contract, self.server)

    @property
    def server(self):
        return self.server_job.trainer.server

    def side(self, name):
        return self._client(name).side

    def endpoint(self, name, port=None):
        tls = TlsFiles.of_client(self.tls, name) if self.tls else None
        return Endpoint(f"127.0.0.1:{port or self.port}", tls)

    def join(self, name, *, port=None, **options):
        """Let a client take part, perhaps by way of another port."""
        self._start(name, lambda: self._join(name, port, options))

    def join_all(self, **options):
        for name in self.names:
            self.join(name, **options)

    def finish(self):
        """Wait for the end of the run and return its outcome."""
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            for error in list(self.errors.values()):
                raise error
            assert not thread.is_alive(), f"{thread.name} did not end"
        states = [copied(self.side(name).state()) for name in self.names]
        return outcome(self.server.side, states, self.coordinator.progress)

    def _client(self, name):
        return self.jobs[name].trainer.clients[self.names.index(name)]

    def _start(self, name, work):
        def guarded():
            try:
                work()
            except BaseException as error:  # noqa: BLE001  raised again in finish()
                self.errors[name] = error
                self._is_listening.set()

        self._threads.append(threading.Thread(target=guarded, name=name))
        self._threads[-1].start()

    def _serve(self):
        tls = TlsFiles.of_server(self.tls) if self.tls else None
        serve(
            self.server,
            self.contract,
            self._plan,
            Endpoint("127.0.0.1:0", tls),
            self.folder / "checkpoint",
            names=None if self._are_names_open else self.names,
            watch=self._watch,
            guard=self.server_job.trainer.guard,
        )

    def _watch(self, coordinator, port):
        self.coordinator, self.port = coordinator, port
        self._is_listening.set()
        return not self._is_ending

    def _join(self, name, port, options):
        job = self.jobs[name]
        known = {
            "key": self.key,
            "state_folder": self.folder / name,
            "test": job.trainer._test,
            "give_up_seconds": 20.0,
            "meter": self.meters[name],
        }
        self.ends[name] = join(
            self._client(name),
            job.contract,
            self.endpoint(name, port),
            name=name,
            batches=lambda index: job.trainer.batches[index],
            options=JoinOptions(**{**known, **options}),
        )

    def _make_plan(self, **more):
        training = self.experiment.training
        known = {
            "turn_steps": pieces.turn_steps(self.experiment),
            "epochs": training.epochs,
            "max_steps": training.max_steps or 0,
            "local_epochs": training.local_epochs or 0,
            "eval_every": training.eval_every or 0,
            "patience": training.patience or 0,
            "every_client_evaluates": pieces.every_client_evaluates(
                self.experiment, has_own_data=False
            ),
        }
        return RunPlan(**{**known, "step_timeout_seconds": 30.0, **more})
