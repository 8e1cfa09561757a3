import json

import pytest
import torch

from lightsplit.errors import ConfigError, ProtocolError
from lightsplit.experiments import make_experiment, read_experiment, run
from lightsplit.results import RunFolder, tensors

pytestmark = pytest.mark.slow


def without_seconds(record):
    return {name: value for name, value in record.items() if name != "seconds"}


def model_bytes(folder):
    return (folder.path / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    "settings", [{}, {"codec": "lightsplit-l", "topology": "vanilla", "alpha": 0.5}]
)
def test_the_same_experiment_gives_the_same_record_and_model(finish, settings):
    first = finish(**settings)
    torch.rand(3)
    second = finish(**settings)
    assert without_seconds(first.record) == without_seconds(second.record)
    assert model_bytes(first.folder) == model_bytes(second.folder)


def test_another_seed_gives_another_model(finish):
    assert model_bytes(finish(seed=1).folder) != model_bytes(finish(seed=2).folder)


def test_a_run_is_repeated_from_its_own_file(finish, tmp_path):
    first = finish(codec="lightsplit-l", ratio=3.3, wcc=0.01)
    again = RunFolder.create(tmp_path / "again")
    record = run(make_experiment(read_experiment(first.folder.experiment_file)), again)
    assert without_seconds(record) == without_seconds(first.record)
    assert model_bytes(again) == model_bytes(first.folder)


def test_max_steps_ends_a_run(finish):
    record = finish(max_steps=4).record
    assert record["steps"] == 4
    assert record["stopped_by"] == "schedule"


def test_patience_ends_a_run_that_does_not_get_better(finish):
    record = finish(lr=1e-12, patience=2, epochs=50, test_limit=None).record
    assert record["stopped_by"] == "patience"
    assert record["epochs"] <= 4


def test_metrics_hold_one_line_for_each_evaluation(finish):
    folder = finish(epochs=3).folder
    lines = [json.loads(line) for line in folder.metrics_file.read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert lines[-1]["test_accuracy"] == folder.read_record()["test_accuracy"]


def test_the_model_is_saved_under_its_own_names(finish):
    done = finish()
    saved = tensors.load(done.folder.path / "model.safetensors")
    whole = done.job.parts.whole.state_dict()
    assert saved.keys() == whole.keys()
    assert all(torch.equal(saved[name], whole[name]) for name in saved)


@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_private_heads_are_saved_as_one_model_for_each_client(finish, topology):
    done = finish(heads="private", topology=topology)
    files = sorted(done.folder.path.glob("model*.safetensors"))
    assert [f.name for f in files] == [f"model-{i}.safetensors" for i in range(3)]
    models = [tensors.load(file) for file in files]
    assert torch.equal(models[0]["fc1.weight"], models[1]["fc1.weight"])
    assert not torch.equal(models[0]["conv1.weight"], models[1]["conv1.weight"])


def test_a_run_that_diverges_ends_in_one_sentence(finish, tmp_path):
    with pytest.raises(ProtocolError, match="lower the learning rate"):
        finish(lr=1e6, optimizer="sgd", max_steps=6)
    assert not list(tmp_path.rglob("model.safetensors"))


def test_a_stopped_run_has_no_record_and_resumes_to_the_same_end(
    finish, small, tmp_path
):
    whole, folder = finish(), RunFolder.create(tmp_path / "stopped")
    stop_early = {"observe": lambda job, _: job.trainer.progress.steps < 5}
    assert run(small(), folder, **stop_early) is None
    assert not folder.record_file.exists()
    record = run(small(), folder)
    assert without_seconds(record) == without_seconds(whole.record)
    assert model_bytes(folder) == model_bytes(whole.folder)


@pytest.mark.parametrize("every", [1, 4, 0])
def test_checkpoints_come_as_often_as_asked_for(small, tmp_path, every):
    folder, seen = RunFolder.create(tmp_path / "run"), []

    def observe(job, _):
        saved = [int(path.name[5:]) for path in folder.checkpoint.glob("step-*")]
        seen.append(job.trainer.progress.steps - max(saved, default=0))
        return True

    run(small(), folder, checkpoint_every=every, observe=observe)
    assert max(seen) == (every or 6)


def test_a_longer_run_resumes_from_a_finished_one(finish, small):
    short, long = finish(epochs=1), finish(epochs=2)
    record = run(small(epochs=2), short.folder)
    assert without_seconds(record) == without_seconds(long.record)
    assert model_bytes(short.folder) == model_bytes(long.folder)
    kept = make_experiment(read_experiment(short.folder.experiment_file))
    assert kept == small(epochs=2)


def test_a_run_cannot_be_made_shorter_than_it_is(finish, small):
    done = finish(epochs=2)
    with pytest.raises(ConfigError, match="at step 12, beyond the 6 asked for"):
        run(small(epochs=1), done.folder)
    assert done.folder.read_record() == done.record


def test_a_refused_experiment_leaves_the_folder_free_for_another(small, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    with pytest.raises(ConfigError):
        run(small(clients=5000), folder)
    assert run(small(max_steps=1), RunFolder.create(tmp_path / "run"))["steps"] == 1
