"""All codes of an image over all epochs, linked and joined."""

from dataclasses import replace

import pytest
import torch

from lightsplit.audits import AuditOptions, audit, audit_during
from lightsplit.audits.attacking import Interrupted
from lightsplit.audits.linking import link
from lightsplit.errors import AuditError, ConfigError

pytestmark = pytest.mark.slow

FEW_BITS = {"codec": "lightsplit-b", "bits": 6, "epochs": 5, "train_limit": 600}
EFFORT = "steps=250,most_steps=250,width=16"
WATCHED = AuditOptions(
    attacks=(f"transcript-decoder:{EFFORT}",),
    during=True,
    images=60,
    auxiliary=300,
    score_every=None,
    save_every=None,
)


def figures(entries, name):
    (found,) = [entry for entry in entries if entry["attack"] == name]
    return found, {key: one["mean"] for key, one in found["metrics"].items()}


def test_rows_of_a_step_are_named_by_their_targets(victim_of):
    victim = victim_of()
    linked, batches = link(victim), victim.job.shares[0]
    assert (linked.steps_per_pass, linked.passes) == (len(batches), 2)
    found = torch.zeros(linked.images)
    for step in range(linked.steps_per_pass):
        images, _ = batches.batch(step)
        targets = linked.targets_of(step)
        for row, target in enumerate(targets.tolist()):
            if target >= 0:
                assert torch.equal(images[row], victim.targets.images[target])
                found[target] += 1
    assert (found == 1).all()


def test_the_client_of_now_is_a_copy_in_training_mode(victim_of):
    victim = victim_of(codec="lightsplit-b", bits=4)
    client = link(victim).client_now()
    before = {k: v.clone() for k, v in victim.side.state().items()}
    assert client.training
    client(victim.targets.images)
    after = victim.side.state()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_on_a_moving_head_it_beats_the_decoder_of_a_single_code(own_run, quiet):
    folder = own_run(**FEW_BITS)
    last = f"transcript-decoder:releases=1,{EFFORT}"
    both = replace(WATCHED, attacks=(*WATCHED.attacks, last))
    *_, one, all_five = audit_during(folder, both, watch=quiet)
    assert one["notes"][0] == "1 code of each image"
    assert all_five["notes"][0] == "5 codes of each image, joined"
    joined = {name: each["mean"] for name, each in all_five["metrics"].items()}
    assert joined["mse"] < one["metrics"]["mse"]["mean"]
    alone = replace(WATCHED, attacks=(f"decoder:{EFFORT}",), during=False)
    _, single = figures(audit(folder, alone, watch=quiet), "decoder")
    assert joined["mse"] < 0.95 * single["mse"]
    assert joined["ssim"] > single["ssim"] + 0.02
    worst = folder.read_record()["leakage"][0]["metrics"]["mse"]  # the same ladder
    assert worst["attack"].startswith("transcript-decoder")


def test_an_interrupted_audit_ends_like_one_that_was_not(own_run, quiet):
    options = replace(WATCHED, images=6, auxiliary=40, save_every=10)
    whole, stopped = own_run(), own_run()
    (entry, _) = figures(
        audit_during(whole, options, watch=quiet), "transcript-decoder"
    )

    def stops(_title):
        def look(done, _total):
            if done >= 12:
                raise Interrupted

        return look

    with pytest.raises(Interrupted):
        audit_during(stopped, options, watch=stops)
    again = audit_during(stopped, replace(options, resume=True), watch=quiet)
    assert (
        figures(again, "transcript-decoder")[0]["fingerprint"] == entry["fingerprint"]
    )


def test_a_run_without_a_whole_pass_is_refused(own_run, quiet):
    with pytest.raises(AuditError, match="at least one whole pass"):
        audit_during(own_run(max_steps=6), WATCHED, watch=quiet)


def test_it_does_not_run_on_a_finished_run(own_run, quiet):
    with pytest.raises(ConfigError, match="use --during"):
        audit(own_run(), replace(WATCHED, during=False), watch=quiet)


def test_noise_in_place_of_codes_tells_nothing(own_run, quiet, monkeypatch):
    """Codes that do not depend on the image leave a decoder with the mean image."""
    monkeypatch.setattr(
        "lightsplit.attacks.transcript.readable",
        lambda _codec, code: torch.sign(torch.randn_like(code.values)),
    )
    entries = audit_during(own_run(**FEW_BITS), WATCHED, watch=quiet)
    entry, noise = figures(entries, "transcript-decoder")
    _, mean = figures(entries, "mean-image")
    assert noise["mse"] > mean["mse"]
    assert entry["beats_trivial"] is False
