"""Attacks that learn: from the last steps, scored on the way, stopped and resumed."""

import json
from dataclasses import replace

import pytest

from lightsplit.attacks import ATTACKS
from lightsplit.attacks.fora import FORA
from lightsplit.attacks.fora_training import Settings as ForaSettings
from lightsplit.attacks.sdar import SDAR
from lightsplit.attacks.sdar_training import Settings as SdarSettings
from lightsplit.audits import AuditOptions, audit_during
from lightsplit.audits.watching import first_step, total_steps
from lightsplit.errors import AuditError, RunError
from lightsplit.simulation import Trainer

pytestmark = pytest.mark.slow

OPTIONS = AuditOptions(
    attacks=("sdar",),
    form="published",
    images=6,
    auxiliary=60,
    budget="full",
    score_every=4,
    save_every=6,
)


class NarrowSDAR(SDAR):
    """SDAR with small discriminators, and nothing else different."""

    def __init__(self, **known):
        super().__init__(settings=SdarSettings(width=8), **known)


class NarrowFORA(FORA):
    """FORA with a small critic, and nothing else different."""

    def __init__(self, **known):
        super().__init__(settings=ForaSettings(width=8), **known)


@pytest.fixture(autouse=True)
def _narrow_networks(monkeypatch):
    monkeypatch.setitem(ATTACKS._entries, "sdar", NarrowSDAR)
    monkeypatch.setitem(ATTACKS._entries, "fora", NarrowFORA)


@pytest.fixture
def stops_after(monkeypatch):
    """Return what makes training break off after so many turns, once."""

    def stop(turns):
        whole = Trainer.run

        def broken(trainer):
            for number, done in enumerate(whole(trainer), start=1):
                yield done
                if number == turns:
                    monkeypatch.setattr(Trainer, "run", whole)
                    raise KeyboardInterrupt

        monkeypatch.setattr(Trainer, "run", broken)

    return stop


def lines(folder, name="sdar-published"):
    text = (folder.path / f"audit-{name}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def last(entries):
    return {k: v for k, v in entries[-1].items() if k != "seconds"}


def test_scores_on_the_way_are_lines_of_a_file(own_run, quiet):
    folder = own_run()
    audit_during(folder, OPTIONS, watch=quiet)
    found = lines(folder)
    assert [line["step"] for line in found] == [4, 8]
    assert all(0 < line["mse"] < 1 and line["images"] == 20 for line in found)
    assert all(0 <= line["label_accuracy"] <= 1 for line in found)


@pytest.mark.slow
def test_in_the_u_shape_sdar_is_scored_for_labels_too(own_run, quiet):
    entry = audit_during(own_run(), OPTIONS, watch=quiet)[-1]
    assert entry["attack"] == "sdar"
    assert 0 <= entry["metrics"]["label_accuracy"]["low"] <= 1
    vanilla = audit_during(own_run(topology="vanilla"), OPTIONS, watch=quiet)[-1]
    assert "label_accuracy" not in vanilla["metrics"]


def test_an_attack_that_may_give_negatives_is_scored_both_ways(own_run, quiet):
    folder = own_run()
    options = replace(OPTIONS, attacks=("fora",))
    entry = audit_during(folder, options, watch=quiet)[-1]
    plain, negative = (
        entry[name]["ssim"]["mean"] for name in ("metrics", "metrics_of_negative")
    )
    assert plain != negative
    assert (folder.images / "audit-fora-published.png").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("turns", [21, 13])
def test_an_audit_that_was_interrupted_ends_like_one_that_was_not(
    own_run, quiet, stops_after, turns
):
    whole, broken = own_run(), own_run()
    expected = audit_during(whole, OPTIONS, watch=quiet)
    stops_after(turns)
    with pytest.raises(KeyboardInterrupt):
        audit_during(broken, OPTIONS, watch=quiet)
    assert (broken.path / "audit-checkpoint" / "latest").is_file()
    resumed = audit_during(broken, replace(OPTIONS, resume=True), watch=quiet)
    assert last(resumed) == last(expected)
    assert lines(broken) == lines(whole)
    assert not (broken.path / "audit-checkpoint").exists()


def test_an_audit_with_other_options_is_not_taken_up(own_run, quiet, stops_after):
    folder = own_run()
    stops_after(13)
    with pytest.raises(KeyboardInterrupt):
        audit_during(folder, OPTIONS, watch=quiet)
    other = replace(OPTIONS, resume=True, seed=5)
    with pytest.raises(RunError, match="belongs to an audit with other options"):
        audit_during(folder, other, watch=quiet)


def test_without_a_saved_audit_there_is_nothing_to_resume(own_run, quiet):
    with pytest.raises(RunError, match="holds no checkpoint"):
        audit_during(own_run(), replace(OPTIONS, resume=True), watch=quiet)


def test_label_inference_cannot_be_resumed(own_run, quiet):
    options = replace(OPTIONS, attacks=("sdar", "label-hint"), resume=True)
    with pytest.raises(AuditError, match="which are not saved"):
        audit_during(own_run(), options, watch=quiet)


def test_a_budget_lasts_for_the_last_steps(victim_of):
    victim = victim_of()
    assert total_steps(victim) == 8

    class Brief:
        budget = "quick"
        steps = {"quick": 3}  # noqa: RUF012

    assert first_step(Brief, 8) == 5
    assert first_step(Brief, 2) == 0
    Brief.budget = "full"
    assert first_step(Brief, 8) == 0


def test_an_attack_learns_from_the_steps_of_its_budget(own_run, quiet, monkeypatch):
    monkeypatch.setattr(NarrowSDAR, "steps", {"quick": 3})
    options = replace(OPTIONS, budget="quick", score_every=1)
    folder = own_run()
    entry = audit_during(folder, options, watch=quiet)[-1]
    assert [line["step"] for line in lines(folder)] == [6, 7, 8]
    assert any("learnt from 3 steps" in note for note in entry["notes"])
