"""Runs whose codes are differentially private."""

import pytest
import torch

from lightsplit.codecs import Code
from lightsplit.errors import ConfigError, RunError
from lightsplit.experiments import from_settings, run
from lightsplit.experiments.communication import foresee_traffic
from lightsplit.protocol import CodeMessage, Release
from lightsplit.results import RunFolder
from lightsplit.results.promises import dp_text
from lightsplit.runtime import ReleaseBudget, ReleaseLog
from lightsplit.transports import Recorder, through

BITS = {"codec": "lightsplit-b", "bits": 4, "release": "once", "local_epochs": 1}
FLOATS = {"codec": "lightsplit-f", "cut": "l1", "turn_steps": "epoch"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "delta", "releases"),
    [({**BITS, "dp": 3.0}, 0.0, 1), ({**FLOATS, "dp": 3.0}, 1e-5, 2)],
    ids=["bits", "floats"],
)
def test_record_and_forecast_say_what_is_promised(settings, delta, releases, finished):
    done = finished(**settings)
    certificate = done.record["certificate"]
    assert certificate["epsilon"] == pytest.approx(3, abs=2e-3)
    assert (certificate["delta"], certificate["releases"]) == (delta, releases)
    assert "not its label" in certificate["dp_scope"]
    assert done.job.experiment.settings()["dp"] == 3.0
    foreseen = foresee_traffic(done.job.experiment).certificate
    assert foreseen == {key: certificate[key] for key in foreseen}
    assert f"ε = {certificate['epsilon']:.4g}" in dp_text(foreseen)


def test_a_run_without_it_promises_nothing(small):
    certificate = foresee_traffic(small()).certificate
    assert (certificate["epsilon"], certificate["delta"]) == (None, None)
    assert dp_text(certificate) == ""


@pytest.mark.slow
def test_a_resumed_run_sends_the_very_codes_again(small, tmp_path):
    """Noise is bound to a sample's place: stopped and resumed, no second code."""

    def codes(folder, stop_after):
        recorder, turns = Recorder(), []

        def listen(job):
            for client in job.trainer.clients:
                client.send = through(recorder, client.send)

        def observe(_job, _done):
            turns.append(1)
            return len(turns) != stop_after

        experiment, run_folder = small(**BITS, dp=1.0), RunFolder.create(folder)
        if stop_after:
            run(experiment, run_folder, started=listen, observe=observe)
        run(experiment, run_folder, started=listen)
        return [one for one, _ in recorder.exchanges if isinstance(one, Release)]

    def by_sample(messages):
        found = {}
        for one in messages:
            place = (one.client, one.is_training, one.first)
            found.setdefault(place, set()).add(one.code.values.numpy().tobytes())
        return found

    whole = by_sample(codes(tmp_path / "whole", 0))
    again = by_sample(codes(tmp_path / "again", 8))
    assert again == whole
    assert {len(versions) for versions in again.values()} == {1}


def test_a_private_code_of_a_sample_is_not_its_clear_code(make_job):
    job = make_job(**BITS, dp=0.5)
    client = job.trainer.clients[0]
    inputs = torch.rand(200, 1, 8, 8)
    client.model.eval()
    with torch.no_grad(), client.model.draws.release(0, "train", 0):
        made = client.model.encode(client.side.activate(inputs))
    assert 0 < (made.code.values != made.sent.values).any(1).float().mean() < 1


def test_an_evaluation_that_is_repeated_sends_the_very_codes_again(make_job):
    """A server that was resumed asks for it again: other noise would be averaged."""
    client = make_job(**FLOATS, dp=2.0).trainer.clients[0]
    recorder, inputs = Recorder(), torch.rand(4, 1, 8, 8)
    client.send = through(recorder, client.send)
    for _ in range(2):
        client.predict_test(inputs, 0)
        client.predict_test(inputs, 4)
    codes = [message.code.values for message, _ in recorder.exchanges]
    assert torch.equal(codes[0], codes[2])
    assert torch.equal(codes[1], codes[3])
    assert not torch.equal(codes[0], codes[1])


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"codec": "none"}, "codec none sends no code"),
        ({**FLOATS, "topology": "vanilla"}, "labels go to the server"),
        ({**FLOATS, "turn_steps": 2}, "give --turn-steps epoch"),
        ({**FLOATS, "eval_every": 1}, "drop eval_every"),
        ({**BITS, "objective": "dp:0,epsilon=1", "dp": None}, "weight must be 1"),
    ],
)
def test_what_makes_the_promise_void_is_refused(settings, reason):
    with pytest.raises(ConfigError, match=reason):
        from_settings({"dp": 2.0, **settings})


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"codec": "raw", "cut": "l2", "turn_steps": "epoch"}, "BatchNorm .* mixes"),
        ({**BITS, "release": None, "local_epochs": None}, "turn-steps epoch"),
        (
            {**BITS, "release": None, "local_epochs": None, "turn_steps": "epoch"},
            "give --release once",
        ),
    ],
)
def test_codes_that_depend_on_others_or_go_out_often_are_refused(
    settings, reason, make_job
):
    with pytest.raises(ConfigError, match=reason):
        make_job(**settings, dp=2.0)


def asking(folder, releases=2):
    """Return a client's budget of three steps, what asks it, and what was sent."""
    sent = []
    budget = ReleaseBudget(ReleaseLog(folder), releases, lambda: 3)

    def ask(step, value, *, is_training=True):
        code = Code(torch.full((2, 2), value))
        message = CodeMessage(0, step, code, is_training=is_training)
        return budget(message, sent.append)

    return budget, ask, sent


def test_a_server_that_asks_for_more_steps_or_other_codes_gets_nothing(tmp_path):
    _, ask, sent = asking(tmp_path)
    ask(0, 1.0)
    ask(2, 2.0)
    ask(0, 1.0)  # again, as it was
    with pytest.raises(RunError, match=r"counted for 3 steps .* step 4"):
        ask(3, 1.0)
    with pytest.raises(RunError, match="codes of its step 2, and now"):
        ask(2, 2.5)
    assert len(sent) == 3
    _, again, _ = asking(tmp_path)
    with pytest.raises(RunError, match="codes of its step 0"):
        again(0, 0.0)


def test_a_server_that_asks_for_more_evaluations_or_other_ones_gets_nothing(tmp_path):
    budget, ask, sent = asking(tmp_path)

    def evaluate(step, *values):
        budget.begin_evaluation()
        for value in values:
            ask(step, value, is_training=False)

    evaluate(1, 1.0, 2.0)
    evaluate(1, 1.0, 2.0)  # again, as it was
    evaluate(3, 1.5, 2.5)
    with pytest.raises(RunError, match=r"counted for 2 evaluations"):
        evaluate(2, 1.0)
    with pytest.raises(RunError, match="evaluation after step 3, and now"):
        evaluate(3, 1.5, 2.0)
    assert len(sent) == 7
    budget, ask, sent = asking(tmp_path)
    evaluate(1, 1.0, 2.0)
    with pytest.raises(RunError, match=r"counted for 2 evaluations"):
        evaluate(2, 1.0)
