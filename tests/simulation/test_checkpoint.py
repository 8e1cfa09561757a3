"""Stopping at any checkpoint and going on equals never having stopped, bit for bit."""

import json

import pytest
import torch

from lightsplit.errors import ContractError, RunError
from lightsplit.experiments import build, from_settings
from lightsplit.runs import checkpoint_folder
from lightsplit.simulation import checkpoint

SMALL = {
    "train_limit": 160,
    "test_limit": 40,
    "clients": 3,
    "batch_size": 16,
    "turn_steps": 1,
}
RUNS = {
    "shared": {"codec": "lightsplit-f", "projection": "dct", "wcc": 0.01},
    "private": {"codec": "lightsplit-l", "heads": "private", "turn_steps": 2},
    "vanilla": {"codec": "learned-1x1", "topology": "vanilla", "optimizer": "adamw"},
    "parts stay": {"wire": "max", "turn_steps": 2},
    "sgd": {"codec": "topk", "optimizer": "sgd", "momentum": 0.9, "alpha": 0.5},
}


def job(name):
    return build(from_settings({**SMALL, **RUNS[name], "epochs": 2}))


def states(trainer):
    sides = [trainer.server.side, *(client.side for client in trainer.clients)]
    return [{k: v.clone() for k, v in side.state().items()} for side in sides]


def without_seconds(history):
    return [{k: v for k, v in line.items() if k != "seconds"} for line in history]


@pytest.fixture(scope="module", params=RUNS)
def undisturbed(request):
    whole = job(request.param)
    list(whole.trainer.run())
    return request.param, whole.trainer


@pytest.mark.slow
def test_a_run_resumed_after_any_turn_ends_as_if_undisturbed(undisturbed, tmp_path):
    name, whole = undisturbed
    for stop in (1, 4, 9):
        first = job(name)
        for number, _ in enumerate(first.trainer.run(), 1):
            if number == stop:
                break
        folder = tmp_path / str(stop)
        checkpoint.save(folder, first.trainer, first.contract.digest)
        second = job(name)
        checkpoint.load(folder, second.trainer, second.contract.digest)
        list(second.trainer.run())
        for ours, theirs in zip(states(second.trainer), states(whole), strict=True):
            assert ours.keys() == theirs.keys()
            assert all(torch.equal(ours[key], theirs[key]) for key in ours)
        ours, theirs = second.trainer.progress, whole.progress
        assert ours.bytes == theirs.bytes
        assert ours.client_steps == theirs.client_steps
        assert without_seconds(ours.history) == without_seconds(theirs.history)


@pytest.fixture
def saved(tmp_path):
    done = job("shared")
    next(iter(done.trainer.run()))
    checkpoint.save(tmp_path, done.trainer, done.contract.digest)
    return tmp_path, done


def test_the_newest_checkpoint_and_the_one_before_are_kept(saved):
    folder, done = saved
    list(done.trainer.run())
    newest = checkpoint.save(folder, done.trainer, done.contract.digest)
    kept = sorted(path.name for path in folder.glob("step-*"))
    assert kept == ["step-00000001", newest.name]
    assert (folder / "latest").read_text() == newest.name


def test_saving_the_same_step_again_leaves_the_first_one(saved):
    folder, done = saved
    stamp = next(folder.glob("step-*/server.safetensors")).stat().st_mtime_ns
    checkpoint.save(folder, done.trainer, done.contract.digest)
    assert next(folder.glob("step-*/server.safetensors")).stat().st_mtime_ns == stamp


def test_a_draft_left_by_a_crash_does_no_harm(saved):
    folder, done = saved
    (folder / "step-00000099.tmp").mkdir()
    (folder / "step-00000099.tmp" / "server.safetensors").write_bytes(b"half")
    checkpoint.load(folder, done.trainer, done.contract.digest)
    assert done.trainer.progress.steps == 1


def test_a_checkpoint_of_another_contract_is_refused(saved):
    folder, done = saved
    with pytest.raises(ContractError, match="is of another run"):
        checkpoint.load(folder, done.trainer, "0" * 64)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("step-00000001/server.safetensors", b"not tensors"),
        ("step-00000001/progress.json", b"{"),
        ("latest", b"step-00000007"),
        ("latest", b"../elsewhere"),
    ],
)
def test_a_damaged_checkpoint_is_refused_by_name(saved, file, content):
    folder, done = saved
    (folder / file).write_bytes(content)
    with pytest.raises(RunError, match=file.rsplit("/", maxsplit=1)[-1]):
        checkpoint.load(folder, done.trainer, done.contract.digest)


def test_a_folder_without_a_checkpoint_is_refused(tmp_path):
    done = job("shared")
    assert not checkpoint_folder.exists(tmp_path)
    with pytest.raises(RunError, match="holds no checkpoint"):
        checkpoint.load(tmp_path, done.trainer, done.contract.digest)


def test_a_checkpoint_is_plain_json_and_safetensors(saved):
    folder, _ = saved
    files = {path.name for path in folder.glob("step-*/*")}
    assert files == {"server.safetensors", "client-0.safetensors", "progress.json"}
    json.loads(next(folder.glob("step-*/progress.json")).read_text())
