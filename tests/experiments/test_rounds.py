"""Parallel rounds in an experiment: what they set, and what they refuse."""

import pytest

from lightsplit.errors import ConfigError
from lightsplit.experiments import build, from_settings, pieces, run
from lightsplit.experiments.communication import foresee_traffic
from lightsplit.results import RunFolder
from lightsplit.runs import checkpoint_folder
from lightsplit.runs.rounds import Attendance, drawn_owners

SMALL = {
    "rounds": "parallel",
    "clients": 3,
    "train_limit": 96,
    "test_limit": 24,
    "batch_size": 16,
    "epochs": 2,
    "projection": "dct",
}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"topology": "vanilla"}, "topology vanilla"),
        ({"gradients": "none", "ratio": 1}, "gradients none"),
        ({"release": "once"}, "release once"),
        ({"detector": "cosine-code"}, "detector cosine-code"),
        ({"inspector": "splitguard"}, "inspector splitguard"),
        ({"statistics": "per-client", "heads": "private"}, "statistics per-client"),
        ({"hand_off": "int8"}, "hand_off int8"),
        ({"hand_off_optimizer": "stays"}, "hand_off_optimizer stays"),
        ({"turn_steps": 4}, "turn_steps"),
        ({"accumulate": 2, "turn_steps": 2}, "accumulate"),
    ],
)
def test_what_does_not_go_with_parallel_rounds_is_refused_by_name(settings, named):
    with pytest.raises(ConfigError, match=named):
        from_settings({**SMALL, **settings})


def test_a_round_is_one_batch_and_statistics_are_shared():
    experiment = from_settings({**SMALL, "heads": "private"})
    assert experiment.training.turn_steps == 1
    assert experiment.statistics == "shared"


def test_rounds_are_never_cut_short():
    job = build(from_settings({**SMALL, "max_steps": 5}))
    assert job.trainer.schedule.total_steps == 3


@pytest.mark.slow
@pytest.mark.parametrize("heads", ["shared", "private"])
def test_a_resumed_run_is_the_uninterrupted_one_and_its_bytes_were_foreseen(
    heads, tmp_path
):
    experiment = from_settings({**SMALL, "heads": heads})
    whole, parted = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "parted")
    expected = run(experiment, whole)
    rounds = iter([True, False])
    assert run(experiment, parted, observe=lambda *_: next(rounds)) is None
    got = run(experiment, parted)
    newest = [
        sorted((one.checkpoint / "step-00000012").glob("*.safetensors"))
        for one in (whole, parted)
    ]
    assert checkpoint_folder.exists(parted.checkpoint)
    assert [one.name for one in newest[0]] == [one.name for one in newest[1]]
    for mine, theirs in zip(*newest, strict=True):
        assert mine.read_bytes() == theirs.read_bytes()
    assert got["bytes"] == expected["bytes"] == foresee_traffic(experiment).bytes


def test_a_participation_file_needs_parallel_rounds(tmp_path):
    file = tmp_path / "participation.jsonl"
    file.write_text(Attendance.full([0, 1]).to_line(0) + "\n")
    turns = from_settings({**SMALL, "rounds": "turns"})
    with pytest.raises(ConfigError, match="--rounds"):
        run(turns, RunFolder(tmp_path / "run"), participation=file)


@pytest.mark.slow
def test_a_run_follows_its_participation_file(tmp_path):
    file = tmp_path / "participation.jsonl"
    lines = [Attendance.full([0, 1]).to_line(0), Attendance.full([2]).to_line(1)]
    file.write_text("\n".join(lines) + "\n")
    record = run(from_settings(SMALL), RunFolder(tmp_path / "run"), participation=file)
    assert (record["rounds"], record["steps"], record["samples"]) == (2, 3, 48)


def test_owners_in_one_process_compute_parallel_rounds_on_the_cpu(monkeypatch):
    make = pieces.make_client_sides

    def elsewhere(*arguments):
        sides = make(*arguments)
        sides[0].modules.to("meta")
        return sides

    monkeypatch.setattr(pieces, "make_client_sides", elsewhere)
    with pytest.raises(ConfigError, match="--device cpu or --rounds turns"):
        build(from_settings(SMALL))


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"heads": "shared"},
        {"heads": "private"},
        {"rounds": "splitfed-v1", "turn_steps": 2},
        {"rounds": "splitfed-v2", "turn_steps": 2},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_owners_are_drawn_for_each_round_and_their_bytes_foreseen(settings, tmp_path):
    drawn = {**SMALL, "clients": 6, "owners_per_round": 2, "batch_size": 4, **settings}
    experiment = from_settings(drawn)
    record = run(experiment, RunFolder(tmp_path / "drawn"))
    traffic = foresee_traffic(experiment)
    assert (record["steps"], record["samples"]) == (traffic.steps, traffic.samples)
    assert record["bytes"] == traffic.bytes
    every = from_settings({**drawn, "owners_per_round": None})
    assert record["rounds"] == build(every).trainer.schedule.rounds_per_epoch * 2
    assert 3 * record["steps"] == foresee_traffic(every).steps


@pytest.mark.slow
def test_a_run_with_drawn_owners_is_that_of_its_participation_file(tmp_path):
    drawn = {**SMALL, "clients": 6, "owners_per_round": 2, "batch_size": 4}
    file = tmp_path / "participation.jsonl"
    every = set(range(6))
    lines = [
        Attendance.full(list(drawn_owners(every, 2, seed=0, number=one))).to_line(one)
        for one in range(8)
    ]
    assert len(set(lines)) > 4
    file.write_text("\n".join(lines) + "\n")
    found = []
    for settings, told in ((drawn, None), ({**drawn, "owners_per_round": None}, file)):
        folder = RunFolder(tmp_path / f"run {told is None}")
        run(from_settings(settings), folder, participation=told)
        found.append((folder.path / "model.safetensors").read_bytes())
    assert found[0] == found[1]


def test_owners_are_drawn_in_rounds_alone():
    with pytest.raises(ConfigError, match="owners_per_round"):
        from_settings({**SMALL, "rounds": "turns", "owners_per_round": 2})
