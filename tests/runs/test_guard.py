"""The reactions of a guard to flagged clients, in real runs on the digits."""

from typing import ClassVar

import pytest
import torch

from lightsplit.backdoors import Detector
from lightsplit.errors import ConfigError
from lightsplit.experiments import build, from_settings
from lightsplit.runs import Guard, snapshot
from lightsplit.simulation import checkpoint

pytestmark = pytest.mark.slow

SMALL = {
    "train_limit": 90,
    "test_limit": 20,
    "clients": 3,
    "batch_size": 10,
    "turn_steps": 1,
}


class Suspicion(Detector):
    """Flags one client at the end of every window."""

    name = "suspicion"
    needs: ClassVar[frozenset[str]] = frozenset({"code"})
    own_threshold = 0.5

    def score(self, evidence):
        return [float(piece.client == 1) for piece in evidence]


def trainer_of(**settings):
    chosen = {"detector": "cosine-code", "epochs": 2, **SMALL, **settings}
    return build(from_settings(chosen)).trainer


def suspicious(**settings):
    """Return a trainer whose guard flags client 1 from the first epoch on."""
    trainer = trainer_of(**settings)
    trainer.guard.detectors = (Suspicion(clients=3),)
    return trainer


def state_of(trainer):
    sides = {"server": trainer.server.side}
    sides |= {str(client.index): client.side for client in trainer.clients}
    return snapshot.take(sides)


def are_equal(first, second):
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


@pytest.mark.parametrize("detector", ["cosine-output", "foolsgold", "safesplit"])
def test_watching_changes_no_bit_of_the_training(detector):
    watched, unwatched = trainer_of(detector=detector), trainer_of(detector=None)
    for trainer in (watched, unwatched):
        list(trainer.run())
    assert are_equal(state_of(watched), state_of(unwatched))


def test_a_verdict_falls_at_the_end_of_every_epoch_by_default():
    trainer = trainer_of(epochs=3)
    verdicts = [d.ruling.verdict for d in trainer.run() if d.turn.ends_epoch]
    assert len(verdicts) == len(trainer.progress.verdicts) == 3
    assert all(verdict.clients == (0, 1, 2) for verdict in verdicts)


def test_several_detectors_judge_one_run_as_each_would_alone():
    names = ["cosine-code", "contra", "cosine-output"]
    together = trainer_of(detector=",".join(names))
    alone = [trainer_of(detector=name) for name in names]
    for trainer in (together, *alone):
        list(trainer.run())
    for place, verdict in enumerate(together.progress.verdicts):
        expected = [trainer.progress.verdicts[place] for trainer in alone]
        others = verdict["others"]
        assert [seen["detector"] for seen in (verdict, *others)] == names
        assert {**verdict, "others": []} == expected[0]
        for seen, own in zip(others, expected[1:], strict=True):
            assert seen.items() <= own.items()


def test_only_the_first_of_several_detectors_acts():
    quiet, suspicion = trainer_of(on_flag="skip").guard.detector, Suspicion(clients=3)
    undone = []
    for detectors in ((quiet, suspicion), (suspicion, quiet)):
        trainer = trainer_of(on_flag="skip", threshold=1e9)
        quiet.threshold, trainer.guard.detectors = 1e9, detectors
        list(trainer.run())
        undone.append(trainer.progress.undone_turns)
    assert undone == [[], [0, 3, 0]]


def test_verdicts_can_fall_more_often():
    trainer = trainer_of(detect_every=1, epochs=1)
    list(trainer.run())
    assert [v["round"] for v in trainer.progress.verdicts] == [1, 2, 3]


def test_a_warning_undoes_nothing():
    trainer = suspicious(on_flag="warn")
    list(trainer.run())
    assert [v["flagged"] for v in trainer.progress.verdicts] == [[1], [1]]
    assert trainer.progress.undone_turns == []


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_a_skipped_turn_leaves_the_passed_on_side_unchanged_bit_for_bit(heads):
    trainer = suspicious(on_flag="skip", heads=heads)
    before, undone = state_of(trainer), 0
    for done in trainer.run():
        after = state_of(trainer)
        own = {"server"} | ({"0", "1", "2"} if heads == "shared" else set())
        kept = [name for name in before if name.split(".")[0] in own]
        stayed = before.keys() == after.keys() and all(
            torch.equal(before[name], after[name]) for name in kept
        )
        assert stayed == (done.ruling.restore is not None)
        undone += stayed
        before = after
    assert undone == 3  # all turns of client 1 in the second epoch
    assert trainer.progress.undone_turns == [0, 3, 0]


def test_a_skipped_client_still_has_its_turns_and_is_judged_again():
    trainer = suspicious(on_flag="skip", epochs=3)
    list(trainer.run())
    assert trainer.progress.client_steps == [9, 9, 9]
    assert all(1 in verdict["clients"] for verdict in trainer.progress.verdicts)


def test_stop_ends_the_run_at_the_verdict_with_an_evaluation():
    trainer = suspicious(on_flag="stop", epochs=5, detect_every=1, eval_every=100)
    done = list(trainer.run())
    assert trainer.state.is_stopped_by_guard
    assert len(done) == 3
    assert done[-1].evaluation is not None


def test_safesplit_goes_back_to_a_stored_turn_bit_for_bit(monkeypatch):
    trainer = trainer_of(detector="safesplit", on_flag="skip", epochs=3)
    capture, stored = trainer._capture, []
    monkeypatch.setattr(
        trainer, "_capture", lambda: stored.append(capture()) or stored[-1]
    )
    for done in trainer.run():
        if done.ruling.restore is not None:
            assert any(done.ruling.restore is state for state in stored[-3:])
            assert are_equal(capture(), done.ruling.restore)
        else:
            assert are_equal(capture(), stored[-1])
    assert sum(trainer.progress.undone_turns) > 0


@pytest.mark.parametrize(
    "settings",
    [
        {"detector": "cosine-code", "on_flag": "skip", "threshold": 0.5},
        {"detector": "foolsgold", "on_flag": "skip", "detect_every": 2},
        {"detector": "safesplit", "on_flag": "skip"},
        {"detector": "cosine-code,contra,foolsgold", "on_flag": "skip", "sides": "one"},
    ],
)
@pytest.mark.parametrize("stop_after", [4, 13])
def test_a_resumed_guard_rules_like_one_that_was_never_stopped(
    tmp_path, settings, stop_after
):
    whole, first, second = (trainer_of(epochs=3, **settings) for _ in range(3))
    list(whole.run())
    for count, _ in enumerate(first.run(), start=1):
        if count == stop_after:
            break
    checkpoint.save(tmp_path, first, "digest")
    checkpoint.load(tmp_path, second, "digest")
    list(second.run())
    assert second.progress.verdicts == whole.progress.verdicts
    assert second.progress.undone_turns == whole.progress.undone_turns
    assert are_equal(state_of(second), state_of(whole))


def test_a_stopped_run_stays_stopped(tmp_path):
    first, second = (suspicious(on_flag="stop") for _ in range(2))
    list(first.run())
    checkpoint.save(tmp_path, first, "digest")
    checkpoint.load(tmp_path, second, "digest")
    assert list(second.run()) == []
    assert second.state.is_stopped_by_guard


def test_safesplit_accuses_nobody_and_cannot_stop_a_run():
    guard = trainer_of(detector="safesplit").guard
    with pytest.raises(ConfigError, match="on_flag must be warn or skip"):
        Guard(guard.detectors, guard.collector, torch.nn.Linear(1, 1), on_flag="stop")
