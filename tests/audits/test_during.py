"""Attacks during training see every step, and do not change the run."""

from typing import ClassVar

import pytest
import torch

from lightsplit.attacks import ATTACKS, Guess, Observes, Reconstructs, silent
from lightsplit.audits import AuditOptions, audit, audit_during
from lightsplit.errors import ConfigError, RunError
from lightsplit.protocol import CodeMessage
from lightsplit.results import tensors

pytestmark = pytest.mark.slow

LABELS = AuditOptions(attacks=("label-hint",), images=6, auxiliary=60)
ONLINE = AuditOptions(attacks=("watching",), images=6, auxiliary=60)


class Watching(Observes, Reconstructs):
    """Counts what it sees and gives back grey images."""

    name = "watching"
    kind: ClassVar[str] = "published"
    needs = ("image_shape",)
    threat_model = "a server that counts"
    cost = "none"
    seen: ClassVar[list] = []

    def __init__(self, *, image_shape, **options):
        super().__init__(**options)
        self.image_shape = image_shape

    def observe(self, exchange, weights):
        first = next(iter(weights.values()))
        self.seen.append((exchange.request, first.clone()))

    def reconstruct(self, view, progress=silent):
        return torch.full((len(view.codes), *self.image_shape), 0.5)

    def guess(self):
        return Guess(torch.full((20, *self.image_shape), 0.5))

    def state(self):
        return {}

    def load(self, state):
        pass


@pytest.fixture
def watching(monkeypatch):
    monkeypatch.setitem(ATTACKS._entries, "watching", Watching)
    monkeypatch.setattr(Watching, "seen", [])
    return Watching


def test_labels_are_inferred_at_each_evaluation(own_run, quiet):
    folder = own_run()
    entries = audit_during(folder, LABELS, watch=quiet)
    assert [entry["step"] for entry in entries] == [12] * 4 + [24] * 4
    assert len(folder.read_record()["audit"]) == 8


def test_an_attack_that_learns_sees_every_exchange_of_its_victim(
    own_run, quiet, watching
):
    entries = audit_during(own_run(), ONLINE, watch=quiet)
    training = [
        request.step
        for request, _ in watching.seen
        if isinstance(request, CodeMessage) and request.is_training
    ]
    assert training == list(range(8))
    assert entries[-1]["attack"] == "watching"
    assert entries[0]["kind"] == "trivial"


def test_the_servers_weights_are_shown_as_they_change(own_run, quiet, watching):
    audit_during(own_run(), ONLINE, watch=quiet)
    assert not torch.equal(watching.seen[0][1], watching.seen[-1][1])


def test_a_run_that_comes_out_otherwise_stops_the_audit(own_run, quiet):
    folder = own_run()
    file = max(folder.checkpoint.glob("*/server.safetensors"))  # the newest
    state = tensors.load(file)
    name = next(iter(state))
    tensors.save(file, {**state, name: state[name] + 1e-3})
    with pytest.raises(RunError, match="gave other weights"):
        audit_during(folder, LABELS, watch=quiet)


def test_attacks_on_finished_runs_have_nothing_to_learn_in_training(own_run, quiet):
    options = AuditOptions(attacks=("linear",), images=6, auxiliary=60)
    with pytest.raises(ConfigError, match="learns or infers labels"):
        audit_during(own_run(), options, watch=quiet)


def test_an_attack_that_learns_is_not_run_on_a_finished_run(own_run, quiet, watching):
    with pytest.raises(ConfigError, match="use --during"):
        audit(own_run(), ONLINE, watch=quiet)


def test_a_vanilla_run_is_watched_too(own_run, quiet):
    entries = audit_during(own_run(topology="vanilla"), LABELS, watch=quiet)
    assert {entry["message"] for entry in entries} == {"code", "code_gradient"}
