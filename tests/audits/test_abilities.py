"""Attacks of unusual abilities are audited like any other."""

from dataclasses import replace
from typing import ClassVar

import pytest
import torch

from lightsplit.attacks import (
    ATTACKS,
    TARGETS,
    Guess,
    InfersLabels,
    LabelScore,
    Observes,
    Reconstructs,
    silent,
)
from lightsplit.audits import AuditOptions, attack, is_attacked
from lightsplit.audits.stages import stages
from lightsplit.results import main_leakage

pytestmark = pytest.mark.slow

FEW = {"images": 6, "auxiliary": 60}
MESSAGES = ["code", "output", "output_gradient", "code_gradient"]


class Zeros(InfersLabels):
    """Says that every label is 0."""

    needs = ("image_shape",)
    threat_model = "anyone"
    cost = "none"

    def __init__(self, *, image_shape, grey: float = 0.5, **options):
        super().__init__(**options)
        self.image_shape = image_shape
        self.grey = grey

    def infer(self, view, source):
        rows = view.codes if source == TARGETS else view.training_messages(source)
        return torch.zeros(len(rows)).long()

    def score(self, view, source, labels):
        right = (self.infer(view, source) == labels).double()
        return LabelScore("accuracy", float(right.mean()), 0.1, len(right))


class Both(Zeros, Reconstructs):
    """Reconstructs and infers labels, and does not observe."""

    name = "both"
    kind: ClassVar[str] = "oracle"

    def reconstruct(self, view, progress=silent):
        return torch.full((len(view.codes), *self.image_shape), self.grey)


class Reader(Zeros, Observes):
    """Observes and infers the labels of the targets, and gives no images."""

    name = "reader"
    kind: ClassVar[str] = "published"

    def sources(self, view):
        return (TARGETS,)

    def observe(self, exchange, weights):
        pass

    def guess(self):
        return Guess(labels=torch.zeros(20).long())

    def state(self):
        return {}

    def load(self, state):
        pass


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    for kind in (Both, Reader):
        monkeypatch.setitem(ATTACKS._entries, kind.name, kind)


def entries_of(entries, name):
    return [entry for entry in entries if entry["attack"] == name]


def test_images_and_labels_of_one_attack_are_entries_of_their_own(own_run, quiet):
    folder = own_run()
    options = AuditOptions(attacks=("both",), **FEW)
    first, *others = entries_of(attack(folder, options, watch=quiet), "both")
    assert (first["kind"], first["images"]) == ("oracle", 6)
    assert "message" not in first
    assert [entry["message"] for entry in others] == MESSAGES
    assert {entry["kind"] for entry in others} == {"labels"}
    record = folder.read_record()
    assert is_attacked(record, options)
    partial = {**record, "audit": record["audit"][:-4]}
    assert not is_attacked(partial, options)


def test_an_attack_of_both_infers_labels_in_training_and_reconstructs_after_it(
    own_run, quiet
):
    folder = own_run()
    options = AuditOptions(attacks=("both",), during=True, **FEW)
    assert [stage.during for stage in stages(options)] == [True, False]
    entries = entries_of(attack(folder, options, watch=quiet), "both")
    assert [e.get("step") for e in entries] == [12] * 4 + [24] * 4 + [None] * 5
    assert [e for e in entries if "message" not in e] == [entries[8]]
    assert is_attacked(folder.read_record(), options)


def test_an_attack_may_observe_and_give_labels_only(own_run, quiet):
    folder = own_run()
    options = AuditOptions(attacks=("reader",), during=True, score_every=4, **FEW)
    (entry,) = entries_of(attack(folder, options, watch=quiet), "reader")
    assert (entry["message"], entry["images"]) == (TARGETS, 6)
    assert is_attacked(folder.read_record(), options)
    lines = (folder.path / "audit-reader.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert all("label_accuracy" in line and "ssim" not in line for line in lines)


def test_options_are_used_recorded_and_part_of_the_name(own_run, quiet):
    folder = own_run()
    names = ("both", "both:grey=0.25", "both:grey=1")
    options = AuditOptions(attacks=names, **FEW)
    attack(folder, options, watch=quiet)
    record = folder.read_record()
    images = [e for e in entries_of(record["audit"], "both") if "message" not in e]
    assert [e["options"] for e in images] == [{}, {"grey": 0.25}, {"grey": 1.0}]
    assert len({e["fingerprint"] for e in images}) == 3
    pictures = {path.name for path in folder.images.iterdir()}
    assert {"audit-both.png", "audit-both-grey=0.25.png"} <= pictures
    assert {e["shown"]["file"] for e in images} <= pictures
    assert main_leakage(record)["ssim"]["attack"].startswith("both")
    assert is_attacked(record, options)
    assert not is_attacked(record, replace(options, attacks=("both:grey=0.75",)))
