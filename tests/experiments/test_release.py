"""Runs that send the code of each sample once."""

import pytest
import torch
from torch import nn

from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.errors import ConfigError
from lightsplit.experiments import from_settings, run
from lightsplit.experiments.communication import foresee_traffic
from lightsplit.experiments.computation import measure_computation
from lightsplit.experiments.cuts import make_cuts
from lightsplit.experiments.deploy import join_experiment
from lightsplit.results import RunFolder, tensors
from lightsplit.splitting import split

ONCE = {"release": "once", "local_epochs": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {"codec": "lightsplit-b"},
        {"codec": "raw", "heads": "private", "format": "int8", "max_steps": 5},
        {"codec": "raw", "gradients": "none", "eval_every": 1},
    ],
    ids=str,
)
def test_the_forecast_is_what_the_run_counts(finished, more):
    done = finished(**ONCE, **more)
    traffic = foresee_traffic(done.job.experiment)
    assert traffic.bytes == done.record["bytes"]
    assert traffic.bytes["code_gradient"] == 0
    assert traffic.step_ratio == done.record["step_ratio"]
    assert traffic.samples == done.record["samples"]


@pytest.mark.slow
def test_the_certificate_says_one_release(finished):
    certificate = finished(**ONCE, codec="lightsplit-b").record["certificate"]
    assert certificate["releases"] == 1
    assert certificate["bits_per_sample"] == certificate["bits_per_code"] == 16


@pytest.mark.slow
@pytest.mark.parametrize("heads", ["shared", "private"])
@pytest.mark.parametrize("turns", [2, 8, 13])
def test_a_resumed_run_is_the_uninterrupted_one(turns, heads, finished, tmp_path):
    settings = {**ONCE, "codec": "lightsplit-b", "heads": heads}
    whole = finished(**settings)
    folder, seen = RunFolder.create(tmp_path / "run"), []

    def stop(_job, done):
        seen.append(done.turn.phase)
        return len(seen) != turns

    assert run(whole.job.experiment, folder, observe=stop) is None
    record = run(whole.job.experiment, folder)
    assert seen[-1] == {2: "local", 8: "release", 13: "train"}[turns]
    assert record["bytes"] == whole.record["bytes"]
    got, expected = (
        {
            str(file.relative_to(newest)): tensors.load(file)
            for file in sorted(newest.glob("*.safetensors"))
        }
        for newest in (_newest(folder), _newest(whole.folder))
    )
    assert got.keys() == expected.keys()
    for name, state in expected.items():
        assert got[name].keys() == state.keys()
        assert all(torch.equal(got[name][key], state[key]) for key in state)


def _newest(folder):
    return folder.checkpoint / (folder.checkpoint / "latest").read_text()


@pytest.mark.slow
def test_bytes_of_hand_offs_are_those_of_what_still_changes_in_each_phase(make_job):
    job = make_job(**ONCE, codec="lightsplit-b", turn_steps=2)
    trainer, counted, written = job.trainer, 0, None
    sizes = {}
    for event in trainer.run():
        turn = event.turn
        if written is not None and written[0] != turn.client:
            counted += 2 * written[1]
        client = trainer.clients[turn.client]
        state, at = client.side.state(), {"client": 0, "step": 0}
        travels = client.hand_off.write(state, {}, **at, phase=turn.phase).travels
        written = turn.client, len(tensors.to_bytes(travels))
        sizes[turn.phase] = written[1]
    assert trainer.progress.bytes["hand_off"] == counted
    assert sizes["train"] < 0.5 * sizes["local"] == 0.5 * sizes["release"]


@pytest.mark.slow
def test_clients_and_server_learn_the_digits(finished):
    more = {"train_limit": 600, "epochs": 4, "local_epochs": 4, "lr": 3e-3}
    record = finished(codec="lightsplit-b", release="once", **more).record
    assert record["test_accuracy"] > 0.5


def test_a_step_of_the_client_is_one_before_the_release(small):
    once = measure_computation(small(**ONCE, codec="lightsplit-b"))
    usual = measure_computation(small(codec="lightsplit-b"))
    assert once.client.parameters > usual.client.parameters
    assert once.server == usual.server


def test_local_epochs_have_a_default_and_need_codes_that_are_sent_once():
    assert from_settings({"release": "once"}).training.local_epochs == 5
    assert from_settings({"release": "every-step"}).training.local_epochs is None
    with pytest.raises(ConfigError, match="give --release once too"):
        from_settings({"local_epochs": 3})


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"codec": "none"}, "codec none sends nothing"),
        ({"topology": "vanilla"}, "topology must be u, got vanilla"),
        ({"augment": "flip"}, "train without augmentation"),
        ({"trigger": "badnets"}, "drop the backdoor"),
        ({"hand_off": "int8"}, "hand_off must be fp32 .* got int8"),
        ({"detector": "cosine-code"}, "drop cosine-code"),
        ({"inspector": "splitguard"}, "drop splitguard"),
        ({"hijack": True}, "drop hijack"),
    ],
)
def test_what_does_not_go_with_it_is_refused(more, reason):
    with pytest.raises(ConfigError, match=reason):
        from_settings({"codec": "raw", **ONCE, **more})


class WithSkip(nn.Module):
    """A tail that needs the head's activation too."""

    def __init__(self):
        super().__init__()
        self.first, self.middle, self.last = (nn.Linear(64, 64) for _ in range(3))

    def forward(self, images):
        one = self.first(images.flatten(1))
        return (self.last(self.middle(one)) + one)[:, :10]


def test_a_tail_that_needs_more_than_the_output_is_refused(small, monkeypatch):
    inputs = torch.rand(2, 1, 8, 8)
    parts = split(WithSkip(), head_until="first", tail_from="last", example=inputs)
    experiment = small(**ONCE, codec="raw")
    kind = type(experiment.make_task())
    monkeypatch.setattr(kind, "example_inputs", lambda _: inputs)
    with pytest.raises(ConfigError, match="must need the server's output alone"):
        make_cuts(experiment, parts)


def test_a_client_that_would_record_is_refused_before_anyone_is_called(small, tmp_path):
    options = JoinOptions(state_folder=tmp_path / "me", records=True)
    with pytest.raises(ConfigError, match="start without --record"):
        join_experiment(
            small(**ONCE, codec="raw"), Endpoint("127.0.0.1:1"), options, name="me"
        )
    assert not (tmp_path / "me").exists()
